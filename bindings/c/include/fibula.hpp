/* fibula.h for C++20: objects that free themselves, spans instead of pointers and counts, exceptions instead of false.
 *
 *     fibula::live live(fibula::options().collect(10));
 *     live.set(std::array{fibula::route({10}, 8, 1)});
 *     live.flush();
 *     fibula::reader reader(live);
 *     reader.lookup(std::span<const std::uint32_t>(addresses), std::span(values));
 *
 * What the functions do is in fibula.h; get() gives its pointer. A lookup of spans of different sizes throws
 * std::invalid_argument, and a function of fibula.h that fails fibula::error with the text of fibula_error().
 */
#ifndef FIBULA_HPP
#define FIBULA_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fibula.h"

namespace fibula {

class error : public std::runtime_error {
  public:
    error() : std::runtime_error(fibula_error()) {}
};

/* 16 bytes in network byte order, as in a packet. */
using address6 = std::array<std::uint8_t, 16>;

namespace detail {

inline void check(bool is_done) {
    if (!is_done) throw error();
}

template <class T>
T *check(T *made) {
    if (made == nullptr) throw error();
    return made;
}

inline void check_sizes(std::size_t addresses, std::size_t values) {
    if (addresses != values) throw std::invalid_argument("as many values as addresses");
}

/* The text of a function that writes one as snprintf does. */
template <class Write>
std::string text(Write write) {
    std::string made(64, '\0');
    std::size_t size = write(made.data(), made.size());
    if (size != SIZE_MAX && size >= made.size()) {
        made.resize(size + 1);
        size = write(made.data(), made.size());
    }
    check(size != SIZE_MAX);
    made.resize(size);
    return made;
}

template <auto Free>
struct deleter {
    template <class T>
    void operator()(T *object) const noexcept {
        Free(object);
    }
};

} // namespace detail

/* A route; of IPv4 the first four bytes of the address. Bytes that are left out are 0. */
inline fibula_route route(std::initializer_list<std::uint8_t> address, std::uint8_t length, std::uint64_t value = 0,
                          std::uint8_t family = FIBULA_IPV4) {
    fibula_route made{};
    if (address.size() > sizeof made.address) throw std::invalid_argument("an address has at most 16 bytes");
    std::copy(address.begin(), address.end(), made.address);
    made.family = family;
    made.length = length;
    made.value = value;
    return made;
}

/* A file of `fibula build`. */
class table {
  public:
    explicit table(const char *path) : held(detail::check(fibula_open(path))) {}
    explicit table(std::span<const std::byte> bytes)
        : held(detail::check(fibula_open_memory(bytes.data(), bytes.size()))) {}

    void lookup(std::span<const std::uint32_t> addresses, std::span<std::uint32_t> rows) const {
        detail::check_sizes(addresses.size(), rows.size());
        fibula_lookup4(get(), addresses.data(), rows.data(), rows.size());
    }
    void lookup(std::span<const address6> addresses, std::span<std::uint32_t> rows) const {
        detail::check_sizes(addresses.size(), rows.size());
        fibula_lookup6(get(), addresses.data(), rows.data(), rows.size());
    }
    void lookup(const fibula_batch &batch) const { detail::check(fibula_lookup(get(), &batch)); }

    std::size_t size() const noexcept { return fibula_routes(get()); }
    std::size_t columns() const noexcept { return fibula_columns(get()); }
    std::size_t column(const char *name) const {
        std::size_t found = fibula_column(get(), name);
        detail::check(found != SIZE_MAX);
        return found;
    }
    std::string text(std::size_t column, std::uint32_t row) const {
        return detail::text([&](char *to, std::size_t room) { return fibula_text(get(), column, row, to, room); });
    }
    std::optional<std::uint64_t> number(std::size_t column, std::uint32_t row) const {
        std::uint64_t value;
        if (!fibula_number(get(), column, row, &value)) return std::nullopt;
        return value;
    }
    fibula_memory memory(std::uint8_t family) const {
        fibula_memory found;
        detail::check(fibula_table_memory(get(), family, &found));
        return found;
    }
    const fibula_table *get() const noexcept { return held.get(); }

  private:
    std::unique_ptr<fibula_table, detail::deleter<fibula_close>> held;
};

/* Options of a table that changes. */
class options {
  public:
    options &collect(std::uint32_t milliseconds) noexcept { return given.collect_ms = milliseconds, *this; }
    options &wide() noexcept { return given.flags |= FIBULA_WIDE, *this; }
    options &default_value(std::uint64_t value) noexcept { return given.default_value = value, *this; }
    options &engine(std::string name) { return named = std::move(name), *this; }
    fibula_live *make() const {
        fibula_options all = given;
        if (!named.empty()) all.engine = named.c_str();
        return detail::check(fibula_live_with(&all));
    }

  private:
    fibula_options given = FIBULA_OPTIONS;
    std::string named;
};

/* A table that changes, or the view of a VRF of one, which must not outlive it. */
class live_view {
  public:
    explicit live_view(fibula_live *table) noexcept : seen(table) {}

    void set(std::span<const fibula_route> routes) {
        detail::check(fibula_live_set(seen, routes.data(), routes.size()));
    }
    void remove(std::span<const fibula_route> routes) {
        detail::check(fibula_live_remove(seen, routes.data(), routes.size()));
    }
    void flush() { detail::check(fibula_live_flush(seen)); }
    void load(const char *path, const char *column = nullptr) { detail::check(fibula_live_load(seen, path, column)); }
    void save(const char *path) const { detail::check(fibula_live_save(seen, path)); }

    std::uint64_t changes() const noexcept { return fibula_live_changes(seen); }
    std::uint64_t visible() const noexcept { return fibula_live_visible(seen); }
    bool wait(std::uint64_t change, std::uint32_t most_ms) const { return fibula_live_wait(seen, change, most_ms); }

    std::size_t count(std::uint8_t family) const {
        std::size_t found = fibula_live_count(seen, family);
        detail::check(found != SIZE_MAX);
        return found;
    }
    /* The value of exactly this prefix. */
    std::optional<std::uint64_t> find(fibula_route prefix) const {
        if (!fibula_live_find(seen, &prefix)) return std::nullopt;
        return prefix.value;
    }
    /* The longest match of an address of 4 or 16 bytes in network byte order. */
    std::optional<fibula_route> match(std::span<const std::uint8_t> address) const {
        fibula_route found;
        std::uint8_t family = address.size() == 16 ? FIBULA_IPV6 : address.size() == 4 ? FIBULA_IPV4 : 0;
        if (!fibula_live_match(seen, family, address.data(), &found)) return std::nullopt;
        return found;
    }
    /* Calls `each` with the routes within a prefix, in order; the table may change meanwhile. */
    template <class Each>
    void walk(const fibula_route &within, Each each) const {
        std::vector<fibula_route> part(256);
        std::optional<fibula_route> last;
        for (;;) {
            const fibula_route *after = last ? &*last : nullptr;
            std::size_t count = fibula_live_walk(seen, &within, after, part.data(), part.size());
            detail::check(count != SIZE_MAX);
            for (std::size_t at = 0; at < count; at++) each(part[at]);
            if (count < part.size()) return;
            last = part.back();
        }
    }
    std::string engine(std::uint8_t family) const {
        return detail::text([&](char *to, std::size_t room) { return fibula_live_engine(seen, family, to, room); });
    }
    fibula_counters counters(std::uint8_t family) const {
        fibula_counters found;
        detail::check(fibula_live_counters(seen, family, &found));
        return found;
    }
    fibula_memory memory(std::uint8_t family) const {
        fibula_memory found;
        detail::check(fibula_live_memory(seen, family, &found));
        return found;
    }
    live_view vrf(std::uint32_t number) { return live_view(detail::check(fibula_live_vrf(seen, number))); }
    fibula_live *get() const noexcept { return seen; }

  private:
    fibula_live *seen;
};

class live : public live_view {
  public:
    explicit live(const options &with = options()) : live_view(with.make()), held(get()) {}

  private:
    std::unique_ptr<fibula_live, detail::deleter<fibula_live_free>> held;
};

/* A reader, for one thread at a time. */
class reader {
  public:
    explicit reader(const live_view &of) : held(detail::check(fibula_reader_new(of.get()))) {}

    void lookup(std::span<const std::uint32_t> addresses, std::span<std::uint32_t> values) {
        detail::check_sizes(addresses.size(), values.size());
        fibula_reader_lookup4(held.get(), addresses.data(), values.data(), values.size());
    }
    void lookup(std::span<const address6> addresses, std::span<std::uint32_t> values) {
        detail::check_sizes(addresses.size(), values.size());
        fibula_reader_lookup6(held.get(), addresses.data(), values.data(), values.size());
    }
    void lookup(std::span<const std::uint32_t> addresses, std::span<std::uint64_t> values) {
        detail::check_sizes(addresses.size(), values.size());
        fibula_reader_wide4(held.get(), addresses.data(), values.data(), values.size());
    }
    void lookup(std::span<const address6> addresses, std::span<std::uint64_t> values) {
        detail::check_sizes(addresses.size(), values.size());
        fibula_reader_wide6(held.get(), addresses.data(), values.data(), values.size());
    }
    void lookup(const fibula_batch &batch) { detail::check(fibula_reader_lookup(held.get(), &batch)); }
    void release() noexcept { fibula_reader_release(held.get()); }
    void keep(bool is_keeping) noexcept { fibula_reader_keep(held.get(), is_keeping); }
    fibula_reader *get() const noexcept { return held.get(); }

  private:
    std::unique_ptr<fibula_reader, detail::deleter<fibula_reader_free>> held;
};

} // namespace fibula

#endif
