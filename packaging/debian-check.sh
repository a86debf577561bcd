#!/bin/sh
# In a fresh root (tools/debian.sh): install, upgrade, purge or remove the packages, and what must be true then.
set -eu
cd /packages

fail() { echo "FAILED: $*" >&2; exit 1; }

# Everything that is there, but for this folder, what the kernel shows, and what dpkg and ldconfig keep for themselves.
present() {
    find / -xdev \( -path /packages -o -path /proc -o -path /sys -o -path /dev -o -path /var/lib/dpkg -o -path /var/log \
        -o -path /var/cache/ldconfig -o -path /etc/ld.so.cache \) -prune -o -print | sort
}

answers() {
    fibula lookup 8.8.8.8 2001:67c:2e8:22::c100:68b >answer || fail "fibula lookup: $?"
    grep -Eq '^8\.8\.8\.8[[:space:]].*[[:space:]]US$' answer || fail "$(cat answer)"
    grep -Eq '^2001:67c:2e8:22::c100:68b[[:space:]].*[[:space:]]NL$' answer || fail "$(cat answer)"
    fibula --version | grep -q '^fibula [0-9]' || fail "no version"
    ldconfig -p | grep -q 'libfibula\.so\.[0-9]' || fail "the loader does not know the library"
    ! ldd "$(command -v fibula)" /usr/lib/*/libfibula.so.?* | grep 'not found' || fail "libraries are missing"
    for file in /usr/share/man/man1/fibula.1.gz /usr/share/bash-completion/completions/fibula \
        /usr/share/doc/fibula/copyright /usr/lib/sysusers.d/fibula.conf /usr/include/fibula.h; do
        [ -e "$file" ] || case $file in
            # A minimal root may be set to leave these out.
            /usr/share/man/* | /usr/share/doc/*) ;;
            *) fail "$file is not there" ;;
        esac
    done
}

nothing_left() {
    present >after
    diff before after || fail "what the packages left behind is above"
}

case $1 in
    install)
        ! command -v cc >/dev/null || fail "this root has a compiler"
        present >before
        dpkg -i ./*.deb
        answers
        ;;
    upgrade)
        # A checkpoint of the server, which only a purge removes.
        mkdir -p /var/lib/fibula
        touch /var/lib/fibula/rib.fib
        dpkg -i next/*.deb
        answers
        [ -e /var/lib/fibula/rib.fib ] || fail "the upgrade has removed a checkpoint"
        ;;
    purge)
        # shellcheck disable=SC2046 # one word a package
        dpkg --purge $(dpkg-query -W -f '${Package}\n' '*fibula*')
        nothing_left
        ;;
    remove)
        names=$(dpkg-query -W -f '${Package}\n' '*fibula*')
        # shellcheck disable=SC2086 # one word a package
        dpkg --remove $names
        [ -e /var/lib/fibula/rib.fib ] || fail "a removal that is no purge has removed a checkpoint"
        # shellcheck disable=SC2086
        dpkg --purge $names
        nothing_left
        ;;
esac
