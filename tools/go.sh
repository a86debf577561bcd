# The modules of Go: the C library's tables, and the processor of the OpenTelemetry collector.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# go_version: says which Go is installed; nothing if none is.
go_version() { ! have go || GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//; s/ .*//'; }

# go_wanted MODULE: the version that it asks for.
go_wanted() { sed -n 's/^go //p' "bindings/go/$1/go.mod"; }

# go_is_there MODULE: whether Go is installed as new as the module asks for, with what it finds the library by.
go_is_there() {
    local wanted
    wanted=$(go_wanted "$1")
    have go && have pkg-config && [ "$(printf '%s\n' "$wanted" "$(go_version)" | sort -V | head -1)" = "$wanted" ]
}

# golang [--rates]: the modules with the C library as it is installed, in target/go; tested, or measured.
golang() {
    case ${1:-} in "" | --rates) ;; *) die "go takes --rates, not $1" ;; esac
    packages go=golang-go pkg-config=pkg-config
    go_is_there otel || die "Go $(go_wanted otel) or later is needed, and $(go_version) is installed"
    c "$target/go/prefix"
    say "building the command"
    # The Python package is named for the features that other commands compile with.
    cargo build --quiet -p fibula-cli -p fibula-python --bin fibula
    case ${1:-} in
        "") go_tests "$target/go/prefix/lib" -race -timeout 60m . -answers 100000000 -rows 10000000; go_tests_of_otel ;;
        --rates)
            in_go "$target/go/prefix/lib" rates go run .
            in_go "$target/go/prefix/lib" otel go test -run none -bench Logs -count 5 . ;;
    esac
}

# in_go LIBRARIES MODULE COMMAND...: with the library of a folder. A program finds it there without being installed.
in_go() {
    local libraries module=$2 command
    libraries=$(cd "$1" && pwd)
    command=${FIBULA_BIN:-$(cd "$target/debug" && pwd)/fibula}
    shift 2
    (cd "bindings/go/$module" && GOTOOLCHAIN=local GOWORK=off FIBULA_BIN=$command LD_LIBRARY_PATH=$libraries \
        PKG_CONFIG_PATH=$libraries/pkgconfig "$@")
}

# go_tests LIBRARIES ARGUMENT...: of the module of tables.
go_tests() {
    local libraries=$1
    shift
    go_style .
    in_go "$libraries" . go vet .
    in_go "$libraries" . go test "$@"
}

# go_tests_of_otel: of the processor; the collector's modules are downloaded.
go_tests_of_otel() {
    go_style otel
    in_go "$target/go/prefix/lib" otel go vet .
    in_go "$target/go/prefix/lib" otel go test -race -timeout 20m .
    go_style rates
    in_go "$target/go/prefix/lib" rates go vet .
    # Nothing is timed of what is wrong: a small run compares all answers.
    in_go "$target/go/prefix/lib" rates go run . -prefixes 2000 -keys 100000 -rounds 1 >/dev/null
}

go_style() {
    local wrong
    wrong=$(gofmt -l "bindings/go/$1"/*.go)
    [ -z "$wrong" ] || die "gofmt writes these differently: $wrong"
}

# go_tests_here: short, with the library and the command that the tests were compiled with. It downloads nothing.
go_tests_here() {
    local folder=$target/go/here
    mkdir -p "$folder/lib/pkgconfig" "$folder/include"
    folder=$(cd "$folder" && pwd)
    cp bindings/c/include/fibula.h "$folder/include/"
    ln -sf "$(cd "$target/debug" && pwd)/libfibula_c.so" "$folder/lib/libfibula.so"
    printf 'Name: fibula\nDescription: for tests\nVersion: %s\nCflags: -I%s\nLibs: -L%s -lfibula\n' \
        "$(version)" "$folder/include" "$folder/lib" >"$folder/lib/pkgconfig/fibula.pc"
    go_tests "$folder/lib" -race .
}

# go_all: the whole of it, if Go is installed.
go_all() {
    if go_is_there otel; then
        step "the modules of Go"; golang ""
    else
        step "the modules of Go: SKIPPED, Go $(go_wanted otel) or later and pkg-config are not installed"
    fi
}
