# Debian packages: the command with its units, the C library, its development files; and their installation, upgrade and
# removal in a fresh root.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's, arm64 is arm64.sh's

# deb [--check] [TRIPLE]: the packages for Debian, in target/deb, with binaries for every Linux that has glibc 2.28.
deb() {
    local check='' triple architecture multiarch staged=$target/deb-new/staged
    [ "${1:-}" != --check ] || { check=1; shift; }
    triple=${1:-$(uname -m)-unknown-linux-gnu}
    case $triple in
        x86_64-unknown-linux-gnu) architecture=amd64 multiarch=x86_64-linux-gnu ;;
        "$arm64") architecture=arm64 multiarch=aarch64-linux-gnu ;;
        *) die "Debian packages are made for x86_64-unknown-linux-gnu and $arm64, not for $triple" ;;
    esac
    packages dpkg-buildpackage=dpkg-dev dh=debhelper fakeroot=fakeroot lintian=lintian
    [ -z "$check" ] || [ "$architecture" = "$(dpkg --print-architecture)" ] ||
        die "packages for $architecture cannot be installed on this machine: leave --check out"
    rm -rf "$target/deb-new" && mkdir -p "$staged"/{tree,fibula,library}
    published_command "$triple" "$target/deb-new/command"
    published_library "$triple" "$staged/tree/usr" "lib/$multiarch"
    debian_files "$triple" "$target/deb-new/command" "$staged"
    step "Debian packages for $architecture"
    debian_packages "$(version)" "$architecture"
    # What only a package in Debian's own archive needs, such as the number of a bug, are notes of lintian, not warnings.
    lintian --fail-on error --fail-on warning --allow-root "$target"/deb-new/*.changes
    [ -z "$check" ] || debian_check
    mkdir -p "$target/deb"
    mv "$target"/deb-new/*.{deb,changes,buildinfo} "$target/deb/"
    rm -rf "$target/deb-new"
    ls -l "$target"/deb/*"_$architecture.deb"
}

# debian_files TRIPLE COMMAND STAGED: the command's files where Debian has them, and licences.
debian_files() {
    local triple=$1 from=$2 staged=$3 root=$3/tree/usr
    install -D -m 755 "$from/fibula" "$root/bin/fibula"
    install -D -m 644 -t "$root/share/man/man1" "$from"/man/*.1
    install -D -m 644 "$from/completions/fibula.bash" "$root/share/bash-completion/completions/fibula"
    install -D -m 644 "$from/completions/fibula.fish" "$root/share/fish/vendor_completions.d/fibula.fish"
    install -D -m 644 "$from/completions/fibula.zsh" "$root/share/zsh/vendor-completions/_fibula"
    install -D -m 644 packaging/fibula.sysusers "$root/lib/sysusers.d/fibula.conf"
    install -m 644 -t "$staged/fibula" NOTICE "$from/THIRD-PARTY.txt" "$from/fibula.cdx.json"
    # Under its own name debhelper would take it for the changelog of the package.
    install -m 644 CHANGELOG.md "$staged/fibula/NEWS.md"
    # One text for all machines: libraries for two of them can be installed together if such files are equal.
    third_party fibula-c x86_64-unknown-linux-gnu --target "$arm64" --texts "$staged/library/THIRD-PARTY.txt" \
        --bill "$staged/library/libfibula.cdx.json" --name libfibula
}

# debian_packages VERSION ARCHITECTURE: makes the packages of what is staged. Who publishes them sets DEBEMAIL and
# DEBFULLNAME, as for Debian's own tools.
debian_packages() {
    local version=$1 folder=$target/deb-new/fibula-$1 debian=$target/deb-new/fibula-$1/debian abi maintainer name date
    maintainer="${DEBFULLNAME:-The fibula authors} <${DEBEMAIL:-fibula@example.org}>"
    abi=$(soname)
    abi=${abi#libfibula.so.}
    # Packages of one commit are equal.
    date=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
    rm -rf "$folder" && mkdir -p "$folder"
    cp -al "$target/deb-new/staged" "$folder/staged"
    cp -R packaging/debian "$debian"
    mv "$debian/libfibula@ABI@.install" "$debian/libfibula$abi.install"
    # A name is any text: what sed would read as its own is escaped.
    name=$(printf '%s' "$maintainer" | sed 's,[\\/&],\\&,g')
    sed -i -e "s/@ABI@/$abi/; s/@VERSION@/$version/; s/@MAINTAINER@/$name/" "$debian/control" "$debian/rules"
    # Our licence as lines of a field: indented, a dot for an empty one.
    sed 's/^$/./; s/^/ /' LICENSE-MIT >"$debian/mit"
    sed -i -e "/^@MIT@$/{r $debian/mit" -e 'd}' "$debian/copyright"
    install -m 644 packaging/fibula.service "$debian/fibula.service"
    install -m 644 packaging/fibula-route.service "$debian/fibula.fibula-route.service"
    printf 'staged/fibula/*\n' >"$debian/fibula.docs"
    for name in "libfibula$abi" libfibula-dev; do printf 'staged/library/*\n' >"$debian/$name.docs"; done
    printf 'fibula (%s) unstable; urgency=medium\n\n  * See /usr/share/doc/fibula/NEWS.md.gz.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$date")" >"$debian/changelog"
    (cd "$folder" && SOURCE_DATE_EPOCH=$date dpkg-buildpackage --build=binary --host-arch "$2" --no-check-builddeps \
        --no-sign --no-pre-clean) >"$target/deb-new/log" 2>&1 || { cat "$target/deb-new/log" >&2; die "dpkg-buildpackage failed"; }
    rm -rf "$folder"
}

# units ROOT: systemd of this machine checks the units of that root, and how much they leave open (0 to 100).
units() {
    local folder=$target/deb-new/units name
    mkdir -p "$folder"
    for name in fibula fibula-route; do
        sed "s,/usr/bin/fibula,$(cd "$1" && pwd)&," "$1/lib/systemd/system/$name.service" >"$folder/$name.service"
    done
    systemd-analyze verify --man=no "$folder"/*.service
    systemd-analyze security --offline=true --threshold=20 --no-pager "$folder/fibula.service" | tail -1
    systemd-analyze security --offline=true --threshold=30 --no-pager "$folder/fibula-route.service" | tail -1
    rm -r "$folder"
}

# debian_check: installs, upgrades and removes the packages in a fresh root, with a network and without one, and checks the
# units.
debian_check() {
    local root=$target/deb-new/root
    packages systemd-analyze=systemd
    fresh_root "$root"
    mkdir -p "$root/packages/next"
    cp "$target"/deb-new/*.deb "$root/packages/"
    install -m 755 packaging/debian-check.sh "$root/packages/check"
    step "installed"
    timed "from the packages to the first answers, with a network" chroot "$root" /packages/check install
    chroot "$root" /packages/check purge
    timed "from the packages to the first answers, without a network" unshare --net chroot "$root" /packages/check install
    step "the units"
    units "$root"
    step "upgraded and removed"
    mkdir "$target/deb-new/first" && mv "$target"/deb-new/*.{deb,changes,buildinfo} "$target/deb-new/first/"
    # The same files under a later version.
    debian_packages "$(version)+1" "$(dpkg --print-architecture)"
    mv "$target"/deb-new/*.deb "$root/packages/next/"
    rm "$target"/deb-new/*.{changes,buildinfo}
    mv "$target"/deb-new/first/* "$target/deb-new/" && rmdir "$target/deb-new/first"
    unshare --net chroot "$root" /packages/check upgrade
    unshare --net chroot "$root" /packages/check remove
    rm -rf "$root"
}
