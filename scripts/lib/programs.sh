# For scripts that run built programs.
# shellcheck shell=bash

# built_in FOLDER NAME…: ends the script unless the programs rookery-NAME are in a folder, and says how to build them.
built_in() {
    local folder="$1" name release=""
    shift
    case "$folder" in */release) release=" --release" ;; esac
    for name in "$@"; do
        [ -x "$folder/rookery-$name" ] && continue
        echo "$(basename "$0"): there is no $folder/rookery-$name: run 'cargo build$release --workspace --bins' first" >&2
        exit 1
    done
}
