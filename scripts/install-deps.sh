#!/bin/sh
# Install the Debian packages of the given sections of packages/debian.txt (all sections when none is given).
# Silent when nothing is missing. Without root it only says what is missing and how to install it.
# Exit: 0 all there, 1 something is missing and could not be installed.
set -eu
cd "$(dirname "$0")/.."

sections="${*:-build runtime test lint}"
packages=$(awk -v sections=" $sections " '
    /^# section: / { wanted = index(sections, " " $3 " ") > 0; next }
    /^#/ || NF == 0 { next }
    wanted { print $1 }' packages/debian.txt)

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install-deps: not a Debian system; the packages to look for are:" $packages >&2
    exit 0
fi

# Packages of the list that are not installed. A provided name (pkg-config from pkgconf) counts as installed.
missing_packages() {
    for package in $packages; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed && continue
        dpkg-query -W -f '${db:Status-Status} ${Provides}\n' 2>/dev/null |
            grep '^installed ' | grep -Eq "[ ,]$package(,| |\$)" && continue
        echo "$package"
    done
}

missing=$(missing_packages)
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "install-deps: these packages are missing:" $missing >&2
    echo "help: run as root: apt-get update && apt-get install -y --no-install-recommends" $missing >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "install-deps: installing" $missing
# The lists of packages may be old or absent: a first try without fetching them, then with.
# shellcheck disable=SC2086
if ! apt-get install -y -q --no-install-recommends $missing >"$log" 2>&1; then
    if ! { apt-get update -q && apt-get install -y -q --no-install-recommends $missing; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "install-deps: apt-get could not install:" $missing >&2
        exit 1
    fi
fi
