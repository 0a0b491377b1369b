#!/bin/sh
# The reader on docs/formats/sharded-checkpoint.md reads what shard and reshard write, byte for byte; and so does the
# safetensors package of Python, where it is installed, file by file.
#   tests/scripts/sharded-reader.sh BIN_FOLDER
# Exit: 0 it does, 1 it does not, 77 no Python here.
set -eu
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not here"; exit 77; }
export PATH="$bin:$PATH" PYTHONDONTWRITEBYTECODE=1
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT

awk '/^```python/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/formats/sharded-checkpoint.md >"$T/reader.py"
cat >"$T/compare.py" <<'PYTHON'
import pathlib
import sys

import reader

shards, model = map(pathlib.Path, sys.argv[1:3])
want = {}
for path in model.glob("*.safetensors"):
    header, data = reader.open_file(path)
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            want[name] = (tensor["dtype"], tensor["shape"], bytes(data[begin:end]))
got = {name: rest for name, *rest in reader.read(shards)}
assert want.keys() == got.keys(), want.keys() ^ got.keys()
for name, tensor in want.items():
    assert tensor == tuple(got[name]), name
try:
    from safetensors import safe_open
except ImportError:
    sys.exit(print(f"{shards.name}: {len(want)} tensors"))
for path in shards.glob("*.safetensors"):
    header, data = reader.open_file(path)
    with safe_open(path, framework="np") as opened:
        assert set(opened.keys()) == header.keys() - {"__metadata__"}, path
        assert opened.metadata() == header["__metadata__"], path
        for name in opened.keys():
            assert opened.get_slice(name).get_shape() == header[name]["shape"], name
print(f"{shards.name}: {len(want)} tensors, and each file by the safetensors package")
PYTHON

# MODEL OPTIONS FOR TWO MESHES
try() {
    name=$1
    shift
    shardwright init "tests/data/models/$name" --layers 2 -o "$T/$name" -q
    # shellcheck disable=SC2086
    shardwright shard "$T/$name" $1 -o "$T/$name-shard" -q 2>/dev/null
    # shellcheck disable=SC2086
    shardwright reshard "$T/$name-shard" $2 -o "$T/$name-reshard" -q 2>/dev/null
    python3 "$T/compare.py" "$T/$name-shard" "$T/$name"
    python3 "$T/compare.py" "$T/$name-reshard" "$T/$name"
}
try tiny-llama "--mesh tp=8" "--mesh pp=2,tp=2"
try tiny-phi3 "--mesh tp=4" "--mesh tp=8"
try tiny-mixtral "--mesh dp=2,tp=2 --ep 4" "--mesh tp=2,ep=2"
try tiny-deepseek "--mesh tp=2" "--mesh dp=2,tp=2 --ep 4"
