#!/bin/sh
# wheel-check.sh PHASE FOLDER [WHEEL]: what a user of the wheel does (tools/python.sh), in an environment in FOLDER, where
# the home is, too: `prepare` makes it, `install` installs the wheel and asks command and module, `remove` removes it.
set -eu
phase=$1 folder=$2 wheel=${3:-}
export HOME="$folder/home" PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
unset FIBULA_TABLE FIBULA_CONFIG FIBULA_OFFLINE XDG_CACHE_HOME XDG_CONFIG_HOME

fail() { echo "FAILED: $*" >&2; exit 1; }

# Everything but what Python has compiled of its own modules.
present() { find "$folder" -not -name '*.pyc' -not -name __pycache__ -not -path "$folder/before" | sort; }

case $phase in
    prepare)
        python3 -m venv "$folder"
        mkdir "$folder/home"
        present >"$folder/before"
        ;;
    install)
        "$folder/bin/pip" install --quiet --no-cache-dir --no-index "$wheel"
        [ "$("$folder/bin/fibula" lookup 8.8.8.8 | awk 'END { print $NF }')" = US ] || fail "the command does not answer"
        answer=$("$folder/bin/python" -I -c \
            'import fibula; print(fibula.Table.build("embedded").lookup("2001:67c:2e8:22::c100:68b")["country"])')
        [ "$answer" = NL ] || fail "the module answers $answer"
        ;;
    remove)
        "$folder/bin/pip" uninstall --quiet --yes fibula
        present | diff "$folder/before" - || fail "what removing the wheel left behind is above"
        ;;
    *) fail "prepare, install or remove, not $phase" ;;
esac
