# Programs that start `fibula annotate --stream`: ClickHouse, rsyslog, Telegraf, Redpanda Connect (Benthos).
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

telegraf_version=v1.37.2
benthos_version=v4.60.0

# hosts [--rates] [--rows N] [HOST...]: the examples of docs/stream.md and ten million rows a format, or the rates.
hosts() {
    local programs="$target/hosts/bin" python tests=crates/cli/tests/hosts
    have go || die "./dev hosts compiles Telegraf and Benthos: install Go 1.25 or later"
    rsyslog_there
    mkdir -p "$programs"
    programs=$(cd "$programs" && pwd)
    # Each with the parts that are used: all of Telegraf takes half an hour to compile.
    ! host_is_wanted telegraf "$@" || [ -x "$programs/telegraf" ] || { say "compiling Telegraf" && GOBIN=$programs go install -ldflags "-s -w" \
        -tags custom,inputs.tail,outputs.file,processors.execd,parsers.influx,serializers.influx \
        "github.com/influxdata/telegraf/cmd/telegraf@$telegraf_version"; }
    ! host_is_wanted benthos "$@" || [ -x "$programs/benthos" ] || { say "compiling Benthos" && GOBIN=$programs go install -ldflags "-s -w" \
        "github.com/redpanda-data/benthos/v4/cmd/benthos@$benthos_version"; }
    python=$(python_for "$target/hosts/python")
    pip_install "$python" "$tests/requirements.txt"
    say "building fibula"
    cargo build --quiet --release -p fibula-cli --bin fibula
    FIBULA_BIN="$target/release/fibula" "$python" "$tests" --programs "$programs" "$@"
}

# host_is_wanted HOST ARGUMENT...: whether the arguments name it, or no host.
host_is_wanted() {
    local host=$1 argument is_any=yes
    shift
    for argument; do
        case $argument in
            "$host") return 0 ;;
            rows | clickhouse | rsyslog | telegraf | benthos) is_any= ;;
        esac
    done
    [ -n "$is_any" ]
}

# Debian starts the daemon when it installs it, which nobody asked for here.
rsyslog_there() {
    [ -x /usr/sbin/rsyslogd ] && return
    packages rsyslogd=rsyslog
    [ ! -d /run/systemd/system ] || as_root systemctl disable --now --quiet rsyslog || true
}
