#!/bin/sh
# Run a program on several ranks of this machine: scripts/mpi-run.sh RANKS PROGRAM [ARGUMENT...]
# MPIEXEC names another launcher than mpirun.
set -eu
. "$(dirname "$0")/mpi-env.sh"
exec "${MPIEXEC:-mpirun}" -n "$@"
