# The demo.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# demo [FLOWS [KEYS [ENGINES [ISAS]]]]: the main job on the embedded table. Everything it makes lies in demo-out/.
demo() {
    local flows=${1:-3000000} keys=${2:-1048576} engines=${3:-all} isas=${4:-all} out=demo-out
    [ "$profile" = debug ] || build release
    demo_jobs "$flows" "$keys" "$engines" "$isas"
    say "6. measure the lookup rate"
    fibula bench --table "$out/countries.fib" --engines auto,radix --traffic RND,PFX,ZIPF --keys "$keys" --runs 3
    say "done; the annotated files are in $out/"
}

# demo_jobs FLOWS KEYS ENGINES ISAS: all but the measurement.
demo_jobs() {
    local flows=$1 keys=$2 engines=$3 isas=$4 out=demo-out
    mkdir -p "$out"
    say "1. compile the embedded table (countries of all address ranges) into a snapshot"
    fibula build embedded -o "$out/countries.fib"
    say "2. verify it against the oracle: engines $engines, instruction sets $isas"
    fibula verify --table "$out/countries.fib" --engines "$engines" --isa "$isas" --random $((keys / 10))
    say "3. look up a few addresses"
    fibula lookup --table "$out/countries.fib" 8.8.8.8 193.0.6.139 2001:67c:2e8:22::c100:68b
    say "4. annotate $flows generated flows"
    fibula gen traffic --table "$out/countries.fib" --format flows --count "$flows" -o "$out/flows.csv"
    fibula annotate --table "$out/countries.fib" --column src_ip,dst_ip --add country \
        "$out/flows.csv" -o "$out/flows-annotated.csv"
    head -n 4 "$out/flows-annotated.csv"
    say "5. annotate a real capture, with the matched prefixes"
    fibula annotate --table "$out/countries.fib" --add prefix,country \
        testdata/tcpdump-tests.pcap -o "$out/capture-annotated.csv"
}
