#!/bin/sh
# setup.sh DIR SET: make DIR a virtual environment that holds the pins of SET and this project.
#
# Two stamps inside DIR, each written last, so that an interrupted run is done again:
#   .stamp-pins     contents of the requirement files   differs: DIR is made anew
#   .stamp-project  pyproject.toml and this folder      differs: the project is installed again
set -eu

venv=$1
pins=$2
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

case $pins in
    dev) lists="base dev" peers="model bench" ;;
    floor) lists="floor" peers="model" ;;
    *) echo "setup.sh: unknown set of pins: $pins (known: dev, floor)" >&2; exit 2 ;;
esac

files="requirements/setup.sh requirements/torch.txt"
for name in $lists $peers; do files="$files requirements/$name.txt"; done
want_pins=$(cat $files | cksum)
want_project=$({ cat pyproject.toml; pwd; } | cksum)

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python}; do
        if is_recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    {
        echo "This project needs Python 3.11 or newer; none of these is: ${PYTHON:-python3 python3.11 python3.12 python3.13 python}."
        echo "Name one, for example: make PYTHON=/path/to/python3.11 test"
    } >&2
    return 1
}

same() {
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

# Only what is imported is compiled, below; compiling everything takes longer.
pip_install() {
    "$venv/bin/python" -m pip install -qq --no-compile --no-input --disable-pip-version-check "$@"
}

if ! same "$venv/.stamp-pins" "$want_pins" || ! is_recent "$venv/bin/python"; then
    python=$(find_python)
    echo "Setting up $venv (a few minutes, once)" >&2
    rm -rf "$venv"
    if ! "$python" -m venv "$venv"; then
        echo "$python -m venv failed; on Debian and Ubuntu it needs the package python3-venv." >&2
        exit 1
    fi
    constraints=""
    for name in $lists; do constraints="$constraints -c requirements/$name.txt"; done
    pip_install $constraints -r requirements/torch.txt
    for name in $lists; do pip_install -r "requirements/$name.txt"; done
    for name in $peers; do pip_install --no-deps -r "requirements/$name.txt"; done
    echo "$want_pins" > "$venv/.stamp-pins"
fi

if ! same "$venv/.stamp-project" "$want_project"; then
    pip_install --no-deps --no-build-isolation -e .
    # Where Python is told to write no bytecode, every import would compile anew, for 15 seconds.
    compile="import gasp_integrations.langchain, gasp_integrations.llama_index"
    [ "$pins" = dev ] && compile="$compile, gasp_engine.scorers.embedded, gasp_engine.scorers.transformers
import scipy.stats, lightgbm, matplotlib.pyplot, pytest, hypothesis
from transformers.models.llama import modeling_llama"
    env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -W ignore -c "$compile" || true
    echo "$want_project" > "$venv/.stamp-project"
fi
