// Replays keys through a pipeline that Verilator compiled, one a clock, and writes what comes out.
//
//   replay OUTPUT KEYS STALLS NUMBER=FILE...
//
// KEYS has a key and an answer a line, in hexadecimal; the memories are loaded through the write port from the files of
// $readmemh. STALLS in 256 of the clocks take no output and offer no key. OUTPUT gets, for each key in order, 8 bytes:
// the address (4), the level, the bit, and two of padding. Prints the numbers of keys and clocks.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <string>

#include "Vpipeline.h"
#include "verilated.h"

struct Word {
    uint32_t parts[16] = {};
    bool operator==(const Word& other) const { return !memcmp(parts, other.parts, sizeof parts); }
};

static Word parse(const char* text, const char** end) {
    Word word;
    const char* last = text;
    while (isxdigit(*last)) last++;
    int place = 0;
    for (const char* digit = last; digit-- > text; place += 4) {
        uint32_t value = *digit <= '9' ? *digit - '0' : (*digit | 32) - 'a' + 10;
        word.parts[place / 32] |= value << place % 32;
    }
    *end = last;
    return word;
}

template <typename T> void put(T& port, const Word& word) {
    port = sizeof(T) > 4 ? (T)((uint64_t)word.parts[1] << 16 << 16 | word.parts[0]) : (T)word.parts[0];
}
template <size_t N> void put(VlWide<N>& port, const Word& word) {
    for (size_t i = 0; i < N; i++) port[i] = word.parts[i];
}
template <typename T> Word get(const T& port) {
    Word word;
    word.parts[0] = (uint32_t)port;
    if (sizeof(T) > 4) word.parts[1] = (uint32_t)((uint64_t)port >> 32);
    return word;
}
template <size_t N> Word get(const VlWide<N>& port) {
    Word word;
    for (size_t i = 0; i < N; i++) word.parts[i] = port[i];
    return word;
}

static Vpipeline top;

static void rise() {
    top.clk = 1;
    top.eval();
}

static void fall() {
    top.clk = 0;
    top.eval();
}

static void load(int number, const char* file) {
    std::ifstream in(file);
    if (!in) { fprintf(stderr, "%s: cannot be read\n", file); exit(2); }
    std::string line;
    uint64_t address = 0;
    while (std::getline(in, line)) {
        const char* end;
        if (line[0] == '/') continue;
        if (line[0] == '@') { address = strtoull(line.c_str() + 1, nullptr, 16); continue; }
        top.write_enable = 1;
        top.write_memory = number;
        put(top.write_word, parse(line.c_str(), &end));
        top.write_address = address++;
        fall();
        rise();
    }
    top.write_enable = 0;
}

int main(int count, char** args) {
    FILE* out = fopen(args[1], "wb");
    std::ifstream keys(args[2]);
    uint32_t stalls = atoi(args[3]), random = 1;
    if (!out || !keys) { fprintf(stderr, "usage: replay OUTPUT KEYS STALLS NUMBER=FILE...\n"); return 2; }
    auto chance = [&] {
        random ^= random << 13; random ^= random >> 17; random ^= random << 5;
        return (random >> 8 & 255) < stalls;
    };
    top.rst = 1;
    for (int i = 0; i < 3; i++) { fall(); rise(); }
    top.rst = 0;
    for (int i = 4; i < count; i++) load(atoi(args[i]), strchr(args[i], '=') + 1);
    for (int i = 0; i < 2; i++) { fall(); rise(); }
    std::deque<Word> inside;
    std::string line;
    Word key;
    uint64_t done = 0, clocks = 0;
    bool has_key = false, is_end = false;
    while (!is_end || has_key || !inside.empty()) {
        if (!has_key && !is_end) {
            is_end = !std::getline(keys, line);
            const char* end;
            if (!is_end) { key = parse(line.c_str(), &end); has_key = true; }
        }
        bool offer = has_key && !chance();
        top.in_valid = offer;
        put(top.in_key, key);
        top.out_ready = !chance();
        fall();
        if (top.out_valid && top.out_ready) {
            if (inside.empty() || !(get(top.out_key) == inside.front())) {
                fprintf(stderr, "key %llu: the output is for another key\n", (unsigned long long)done);
                return 1;
            }
            inside.pop_front();
            done++;
            uint32_t address = top.out_address;
            uint8_t record[8] = {};
            memcpy(record, &address, 4);
            record[4] = top.out_level;
            record[5] = top.out_bit;
            fwrite(record, 1, sizeof record, out);
        }
        if (offer && top.in_ready) { inside.push_back(key); has_key = false; }
        rise();
        clocks++;
    }
    if (fclose(out)) { perror(args[1]); return 2; }
    printf("%llu %llu\n", (unsigned long long)done, (unsigned long long)clocks);
}
