# Sourced. pinned NAME sets `tool` to the program NAME of the version in pyproject.toml, from build/venv or the path, and
# ends the script if there is another version or none: other versions give other results.
pinned() {
  local wanted found
  wanted=$(sed -n "s/.*\"$1==\([0-9]*\.[0-9]*\.[0-9]*\).*/\1/p" pyproject.toml)
  tool=build/venv/bin/$1
  if [ ! -x "$tool" ]; then tool=$1; fi
  found=$("$tool" --version 2>/dev/null | sed -n 's/.*version \([0-9.]*\).*/\1/p' || true)
  if [ "$found" != "$wanted" ]; then
    echo "$1 $wanted is needed, found ${found:-none}: pip install $(pinned_name "$1")" >&2
    exit 2
  fi
}

# pinned_name NAME prints NAME==VERSION, for pip.
pinned_name() { sed -n "s/.*\"\($1==[0-9.]*\)\".*/\1/p" pyproject.toml; }
