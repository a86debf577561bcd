/* A program that uses all of fibula.hpp: its argument is a folder. */
#include <fibula.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "check.h"

template <class Throw>
static std::string error_of(Throw call) {
    try {
        call();
    } catch (const std::exception &error) {
        return error.what();
    }
    return "";
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const std::string path = std::string(arguments[1]) + "/cpp.fib";
    const std::array<std::uint32_t, 2> v4 = {0x0a010203, 0x0b000000};
    const std::array<fibula::address6, 1> v6 = {{{0x20, 1, 0x0d, 0xb8}}};
    std::array<std::uint32_t, 2> low{};
    std::array<std::uint64_t, 2> wide{};
    const std::span<const std::uint32_t> of4(v4);
    const std::span<const fibula::address6> of6(v6);
    const std::uint64_t object = UINT64_C(1) << 40;

    fibula::live live(fibula::options().wide().default_value(9).engine("poptrie18"));
    const std::array routes = {
        fibula::route({10}, 8, object),
        fibula::route({10, 1}, 16, 2),
        fibula::route({0x20, 1}, 16, 3, FIBULA_IPV6),
    };
    live.set(routes);
    CHECK(live.changes() == 3 && live.visible() == 3 && live.wait(3, 0) && !live.wait(4, 0));
    fibula::reader reader(live);
    reader.lookup(of4, std::span(wide));
    CHECK(wide[0] == 2 && wide[1] == 9);
    reader.lookup(of4, std::span(low));
    CHECK(low[0] == 2 && low[1] == 9);
    reader.lookup(of6, std::span(wide).first(1));
    CHECK(wide[0] == 3);
    reader.lookup(of6, std::span(low).first(1));
    CHECK(low[0] == 3);
    CHECK(error_of([&] { reader.lookup(of4, std::span(low).first(1)); }) == "as many values as addresses");
    const std::array<std::uint8_t, 4> packet = {10, 9, 8, 7};
    fibula_batch batch = {packet.data(), 4, wide.data(), 8, 1, FIBULA_IPV4, 8};
    reader.lookup(batch);
    CHECK(wide[0] == object);
    batch.family = 9;
    CHECK(error_of([&] { reader.lookup(batch); }).find("family is 9") != std::string::npos);

    CHECK(live.find(routes[0]) == object && !live.find(fibula::route({10}, 9)));
    CHECK(live.match(packet)->length == 8 && !live.match(std::span(packet).first(3)));
    CHECK(live.count(FIBULA_IPV4) == 2 && live.engine(FIBULA_IPV4) == "poptrie18");
    CHECK(live.counters(FIBULA_IPV4).changes == 2 && live.memory(FIBULA_IPV6).engine > 0);
    CHECK(error_of([&] { live.set(std::array{fibula::route({10}, 33)}); }).find("route 0") != std::string::npos);

    /* A walk in parts. */
    std::vector<fibula_route> many;
    for (int at = 0; at < 1000; at++)
        many.push_back(fibula::route({12, 0, std::uint8_t(at >> 8), std::uint8_t(at)}, 32, std::uint64_t(at)));
    fibula::live_view vrf = live.vrf(5);
    vrf.set(many);
    std::uint64_t next = 0;
    vrf.walk(fibula::route({}, 0), [&](const fibula_route &each) { CHECK(each.value == next++); });
    CHECK(next == 1000);
    vrf.remove(many);
    CHECK(vrf.count(FIBULA_IPV4) == 0);

    /* Files. */
    live.save(path.c_str());
    const fibula::table table(path.c_str());
    CHECK(table.size() == 3 && table.columns() == 1 && table.memory(FIBULA_IPV4).engine > 0);
    table.lookup(of4, std::span(low));
    CHECK(table.text(table.column("value"), low[0]) == "2" && table.number(0, low[0]) == 2 && low[1] == FIBULA_NONE);
    CHECK(error_of([&] { table.column("x"); }).find("no column") != std::string::npos);
    table.lookup(of6, std::span(low).first(1));
    CHECK(table.number(0, low[0]) == 3);
    std::ifstream stream(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    const fibula::table copy(std::as_bytes(std::span(bytes)));
    batch.family = FIBULA_IPV4;
    copy.lookup(batch);
    CHECK(copy.number(0, std::uint32_t(wide[0])) == object);
    CHECK(error_of([] { fibula::table("/no/such/file"); }).find("/no/such/file") != std::string::npos);

    /* A thread reads while another one changes and collects. */
    fibula::live collecting(fibula::options().collect(1));
    std::thread thread([&collecting, of4] {
        fibula::reader own(collecting);
        std::array<std::uint32_t, 2> found{};
        while (found[1] != 7) own.lookup(of4, std::span(found));
        own.keep(true);
        own.release();
    });
    collecting.set(std::array{fibula::route({11}, 8, 7)});
    thread.join();
    CHECK(error_of([&] { collecting.load(path.c_str(), "value"); }).find("FIBULA_WIDE") != std::string::npos);
    collecting.flush();
    std::puts("done");
}
