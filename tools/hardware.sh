# The lookup schemes as pipelines in hardware: the tools' environment, simulation, replay of whole tables, synthesis.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target and profile are lib.sh's

# hardware_is_there: whether `hardware_environment` has run, so that `test` has what the short form needs.
hardware_is_there() { have iverilog && [ -e "$target/hardware/requirements.txt.installed" ]; }

# hardware_python ARGUMENTS: the environment's Python in hardware/, with its programs, the command and a folder.
hardware_python() {
    local out
    mkdir -p "$target/hardware-build"
    out=$(cd "$target" && pwd)
    (cd hardware && PATH="$out/hardware/bin:$PATH" HARDWARE_BUILD="$out/hardware-build" \
        FIBULA_BIN="$out/$profile/fibula" "$out/hardware/bin/python" "$@")
}

# The tools: Icarus and a C++ compiler from the system, the others from PyPI in an environment of their own.
hardware_environment() {
    packages iverilog=iverilog g++=g++ make=make
    pip_install "$(python_for "$target/hardware")" hardware/requirements.txt
}

# hardware_short: each pipeline on a small table, and updates beside lookups.
hardware_short() { hardware_python -m pytest -q -m "not slow" -p no:cacheprovider; }

# hardware: all of docs/hardware.md.
hardware() {
    local data=${FIBULA_SHARED:-../shared}/data/tables generated="gen:v4:2024:300000:1" tables=() tables6=()
    hardware_environment
    build release
    step "pipelines in Icarus, and planted faults"; hardware_python -m pytest -q -p no:cacheprovider
    if [ -d "$data" ]; then
        data=$(cd "$data" && pwd)
        tables=("$data/ipasn_20080501_v12.dat.gz --synthetic-hops hash:256" "$data/rrc06-20100701-as2497-v4-fib-nexthop.tsv.xz"
            "$data/pch-20151023-as3856-v4-fib-nexthop.tsv.xz" "$data/ipfire-libloc-20221029-v4-asn.tsv.xz --synthetic-hops hash:256")
        tables6=("$data"/routeviews-20210117-as{293,852}-v6-nh32.tsv.xz "$data/ipfire-libloc-20221029-v6-asn.tsv.xz")
    else
        say "no real tables in $data (FIBULA_SHARED): generated ones stand in"
    fi
    tables+=("$generated") tables6+=("gen:v6:2024:100000:1")
    step "whole tables in Verilator"
    hardware_python replay.py "${tables[@]}"
    hardware_python replay.py --family v6 "${tables6[@]}"
    step "memory, and words of updates"
    hardware_python replay.py --sizes "${tables[@]}"
    hardware_python replay.py --sizes --family v6 "${tables6[@]}"
    hardware_python replay.py --updates 300 --engines sail-l,sail-u,sail-b "${tables[2]:-$generated}"
    step "block RAMs and logic of a Xilinx 7-series"; hardware_python synthesis.py xilinx sail-l sail-u
    hardware_python synthesis.py logic sail-l sail-u sail-b
    step "a clock on an ECP5"; hardware_python synthesis.py ecp5 sail-l
    times
}
