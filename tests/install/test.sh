#!/bin/sh
# Installs the runtime into an empty folder and uses it as another project would: through pkg-config with plain `cc`, and
# through the CMake package. Usage: test.sh BUILD_DIR FIXTURE_WRITER [CMAKE]
set -eu
build=$1 fixture=$2 cmake=${3:-cmake}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --component runtime --prefix "$work/prefix" >"$work/install.log"
"$fixture" "$work/twice.tsp"

expect() { # expect TEXT STATUS COMMAND...
  wanted=$1 status=$2
  shift 2
  got=$("$@" 2>&1) && code=0 || code=$?
  [ "$got" = "$wanted" ] && [ "$code" = "$status" ] || {
    echo "'$*' printed '$got' and exited with $code; expected '$wanted' and $status" >&2
    exit 1
  }
}

lib=$(dirname "$(find "$work/prefix" -name libtransept.so)")
flags=$(PKG_CONFIG_PATH="$lib/pkgconfig" pkg-config --cflags --libs transept)
# shellcheck disable=SC2086
cc -std=c11 -Wall -Wextra -Werror -pedantic "$here/example.c" -o "$work/example" $flags -Wl,-rpath,"$lib"
expect 'y: 2 5' 0 "$work/example" "$work/twice.tsp" 1 2.5
expect "file error: $work/absent.tsp: cannot open: No such file or directory" 6 "$work/example" "$work/absent.tsp"

# Text in, text out; the answer is that of transformers (tokenizer_cases.json of the model).
if [ -x "$build/bin/transept-compile" ]; then
  "$build/bin/transept-compile" "$here/../models/marian-tiny" -o "$work/marian.tsp" >/dev/null
  # shellcheck disable=SC2086
  cc -std=c11 -Wall -Wextra -Werror -pedantic "$here/generate.c" -o "$work/generate" -ltransept_text $flags \
    -Wl,-rpath,"$lib"
  ids='[272,117,124,238,64,44,180,117,72,21,117,172,247,117,256,0]' text='est4 zeexold Wörterest nearheest TgehestR'
  expect "{\"hypotheses\":[{\"ids\":$ids,\"score\":null,\"text\":\"$text\",\"finish\":\"eos\"}],\"input_tokens\":13,\"output_tokens\":15}" \
    0 "$work/generate" "$work/marian.tsp" '{"text": "the small house stands near the river", "max_new_tokens": 24}'
  expect "invalid input: unknown setting 'beams'; the nearest known one is 'num_beams'" 8 "$work/generate" \
    "$work/marian.tsp" '{"text": "a", "beams": 2}'
fi

"$cmake" -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/cmake.log"
"$cmake" --build "$work/build" >>"$work/cmake.log"
expect 'y: 2 5' 0 "$work/build/example-c" "$work/twice.tsp" 1 2.5
expect 'y: 2 5' 0 "$work/build/example-cpp" "$work/twice.tsp" 1 2.5
expect "file error: $work/absent.tsp: cannot open: No such file or directory" 6 "$work/build/example-cpp" \
  "$work/absent.tsp"

# Only the C interface is visible.
others=$(nm -D --defined-only "$lib/libtransept.so" | awk '$2 ~ /[A-Z]/ && $3 !~ /^transept_/ {print $3}')
[ -z "$others" ] || { echo "libtransept.so also exports: $others" >&2; exit 1; }
echo "1 passed, 0 failed"
