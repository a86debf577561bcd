# What is published beside the wheels: the C library, the command and the crates.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # target, profile and emulator are lib.sh's

# soname: of the C library. Before 1.0 its functions may change with each minor version.
soname() {
    local version
    version=$(version)
    case $version in 0.*) version=${version%.*} ;; *) version=${version%%.*} ;; esac
    echo "libfibula.so.$version"
}

# c PREFIX [--multiarch]: a shared library with the name that programs look for, a static one, the headers, and a file for
# pkg-config; with --multiarch in the folder where Debian's linker looks first.
c() {
    [ "$(uname)" = Linux ] || die "this installs the C library on Linux only; elsewhere: cargo build --profile dist -p fibula-c"
    [ -n "${1:-}" ] || die "say where to: ./dev c /usr/local"
    local prefix lib=lib build=(cargo rustc --profile dist -p fibula-c --lib --quiet)
    case ${2:-} in
        "") ;;
        --multiarch)
            lib=$(cc -print-multiarch)
            [ -n "$lib" ] || die "this compiler has no multiarch folder: leave --multiarch out"
            lib=lib/$lib ;;
        *) die "c takes PREFIX and --multiarch, not $2" ;;
    esac
    say "building the C library"
    "${build[@]}" --crate-type staticlib
    "${build[@]}" --crate-type cdylib -- -C "link-arg=-Wl,-soname,$(soname)"
    mkdir -p "$1"
    prefix=$(cd "$1" && pwd)
    c_files "$target/dist" "$prefix" "$lib" "$prefix"
    say "the C library is in $prefix: cc \$(PKG_CONFIG_PATH=$prefix/$lib/pkgconfig pkg-config --cflags --libs fibula) program.c"
}

# abi [--write]: compares the functions and structs of fibula.h with those that bindings/c/abi has, or writes these. A
# test compares the header with the library, so a library of empty functions with its prototypes has the same ABI.
abi() {
    local folder=$target/abi kept=bindings/c/abi/fibula.abi name
    packages abidiff=abigail-tools
    name=$(soname)
    mkdir -p "$folder"
    {
        echo '#include <fibula.h>'
        sed -e ':a' -e '/,$/{N;s/\n */ /;ba' -e '}' bindings/c/include/fibula.h |
            sed -n 's/^\([a-z].*fibula_[a-z0-9_]*(.*)\);$/\1 { __builtin_trap(); }/p'
    } >"$folder/fibula.c"
    cp bindings/c/include/fibula.h "$folder/"
    # In its folder, because the paths of sources become a part of the ABI's file.
    (cd "$folder" && cc -g -fPIC -shared -I . fibula.c -o "$name" "-Wl,-soname,$name")
    abidw --no-corpus-path --no-comp-dir-path --no-show-locs "$folder/$name" --out-file "$folder/fibula.abi"
    if [ "${1:-}" = --write ]; then
        mkdir -p bindings/c/abi
        cp "$folder/fibula.abi" "$kept"
    else
        abidiff "$kept" "$folder/fibula.abi" ||
            die "the C library's ABI differs from $kept: raise the minor version if programs break, then ./dev abi --write"
    fi
}

# c_files BUILT PREFIX LIBRARIES INSTALLED: the library's files below PREFIX, for programs that find them below INSTALLED,
# with the libraries in the folder LIBRARIES of both.
c_files() {
    local built=$1 prefix=$2 libraries=$2/$3 version name
    version=$(version) name=$(soname)
    mkdir -p "$libraries/pkgconfig" "$prefix/include"
    install -m 644 bindings/c/include/fibula*.h* "$prefix/include/"
    install -m 644 "$built/libfibula_c.a" "$libraries/libfibula.a"
    install -m 755 "$built/libfibula_c.so" "$libraries/libfibula.so.$version"
    ln -sf "libfibula.so.$version" "$libraries/$name"
    ln -sf "$name" "$libraries/libfibula.so"
    cat >"$libraries/pkgconfig/fibula.pc" <<PC
prefix=$4
includedir=\${prefix}/include
libdir=\${prefix}/$3
Name: fibula
Description: IP longest-prefix match
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lfibula
Libs.private: -lpthread -ldl -lm
PC
}

# published_target TRIPLE: the standard library of a machine that packages are made for.
published_target() {
    case $1 in
        x86_64-unknown-linux-gnu | "$arm64" | x86_64-unknown-linux-musl | aarch64-unknown-linux-musl) ;;
        *) die "packages are made for x86_64 and aarch64, -unknown-linux-gnu and -unknown-linux-musl, not for $1" ;;
    esac
    rustup target list --installed | grep -qx "$1" || rustup target add "$1"
    [ "$1" != "$arm64" ] || packages aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu
    case $1 in "$(uname -m)"-*) ;; *) packages qemu-aarch64=qemu-user ;; esac
}

# published_build TRIPLE zigbuild|rustc ARGUMENT...: compiles for every Linux of a machine with glibc 2.28 or later, or with
# musl. Zig has the C libraries. Unlike cargo, cargo-zigbuild takes a version of glibc behind the target's name.
published_build() {
    local triple=$1 command=$2 python
    shift 2
    published_target "$triple"
    python=$(python_for "$target/wheel-venv")
    pip_install "$python" bindings/python/requirements-wheel.txt
    case $triple in *-gnu) triple+=.2.28 ;; esac
    PATH="$(dirname "$python"):$PATH" cargo-zigbuild "$command" --quiet --profile "$published" --target "$triple" "$@"
}

# third_party PACKAGE TRIPLE OPTION...: the licence texts of the crates in a package, and the list of these crates.
third_party() {
    local package=$1 triple=$2
    shift 2
    "$(python_for "$target/python")" packaging/third_party.py "$package" --target "$triple" "$@"
}

# published_command TRIPLE FOLDER: the command, run before (for arm64 in an emulator), with its manual pages, completions,
# licences, and the list of the crates in it.
published_command() {
    local triple=$1 folder=$2 profile shell emulator=()
    step "the command for $triple"
    published_build "$triple" zigbuild -p fibula-cli --bin fibula
    profile=$triple/${published/#dev/debug}
    case $triple in "$(uname -m)"-*) ;; *) emulator=("${on_arm64[@]}") ;; esac
    fibula verify --table gen:v4:2024:2000:1,gen:v6:2024:2000:1 --engines auto --random 20000
    rm -rf "$folder" && mkdir -p "$folder"/{man,completions}
    install -m 755 "$target/$profile/fibula" "$folder/"
    install -m 644 LICENSE-MIT LICENSE-APACHE NOTICE README.md "$folder/"
    third_party fibula-cli "$triple" --texts "$folder/THIRD-PARTY.txt" --bill "$folder/fibula.cdx.json" --name fibula
    fibula man "$folder/man"
    for shell in bash zsh fish; do fibula completions "$shell" >"$folder/completions/fibula.$shell"; done
}

# published_library TRIPLE PREFIX LIBRARIES: the C library for every Linux of a machine, installed as `c` does it, for /usr.
published_library() {
    local triple=$1 prefix=$2 libraries=$3
    step "the C library for $triple"
    published_build "$triple" rustc -p fibula-c --lib --crate-type staticlib
    published_build "$triple" rustc -p fibula-c --lib --crate-type cdylib -- -C "link-arg=-Wl,-soname,$(soname)"
    c_files "$target/$triple/${published/#dev/debug}" "$prefix" "$libraries" /usr
}

# archive [TRIPLE]: the command for any Linux, with what belongs to it, in target/archive. With musl it needs no library.
archive() {
    local triple=${1:-$(uname -m)-unknown-linux-gnu} folder
    [ "$(uname)" = Linux ] || die "this makes archives for Linux only; elsewhere: cargo build --profile dist -p fibula-cli --bin fibula"
    folder=$target/archive/fibula-$(version)-$triple
    published_command "$triple" "$folder"
    tar -C "$target/archive" --owner=0 --group=0 --sort=name -cJf "$folder.tar.xz" "$(basename "$folder")"
    rm -rf "$folder"
    ls -l "$folder.tar.xz"
}

# package: the crates as crates.io would get them, in target/package. Nothing is compiled or sent; --verify compiles them,
# from these files alone.
package() {
    local crate name files verify=(--no-verify)
    [ "${1:-}" != --verify ] || verify=()
    rm -f "$target"/package/*.crate
    # What is not published is not packaged either.
    for file in $(git grep -l '^publish = false' -- '*Cargo.toml'); do
        verify+=(--exclude "$(sed -n 's/^name = "\(.*\)"/\1/p' "$file" | head -1)")
    done
    step "crates"; cargo package --workspace --quiet "${verify[@]}"
    if [ "${1:-}" = --verify ]; then
        step "fibula without its sources"; cargo check --package fibula --no-default-features --quiet
    fi
    for crate in "$target"/package/*.crate; do
        name=$(basename "$crate" .crate)
        files=$(tar -tzf "$crate")
        for file in README.md LICENSE-MIT LICENSE-APACHE; do
            grep -qx "$name/$file" <<<"$files" || die "$name lacks $file"
        done
        printf '%8s  %s\n' "$(wc -c <"$crate")" "$name"
    done
}
