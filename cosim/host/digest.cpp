// Digests of memory, to tell whether it has changed: half of the traffic of a comparison with a copy.
#include <cstdint>
#include <cstring>

#if defined(__VPCLMULQDQ__) && defined(__AVX512F__) && !defined(WITH_INTEGERS)
#define WITH_POLYNOMIALS
#include <immintrin.h>
#endif

namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t PRIME = (1ull << 61) - 1;
constexpr unsigned WORDS = 256, BLOCK = 8 * WORDS;  // of a block, and of its key; bytes

struct Region {
  std::uint64_t address, size;
};

struct Digest {
  std::uint64_t low, high;
};

// What is drawn at random once: the key of a block, and where two polynomials are evaluated, below PRIME.
struct Key {
  std::uint64_t words[WORDS], points[2];
};

#ifdef WITH_POLYNOMIALS

// CLHASH's: NH over polynomials of two elements, four products at once, in the time in which the bytes come out of a
// cache. Of two different blocks it is the same for one in 2^64 keys, as NH is.
Wide of_block(const char* bytes, const std::uint64_t* key) {
  constexpr unsigned SUMS = 4, VECTOR = 8;  // words of a vector
  __m512i sums[SUMS] = {};
  for (unsigned word = 0; word < WORDS; word += SUMS * VECTOR)
    for (unsigned each = 0; each < SUMS; ++each) {
      const unsigned place = word + VECTOR * each;
      const __m512i mixed = _mm512_xor_si512(_mm512_loadu_si512(bytes + 8 * place), _mm512_loadu_si512(key + place));
      sums[each] = _mm512_xor_si512(sums[each], _mm512_clmulepi64_epi128(mixed, mixed, 0x10));  // high times low word
    }
  std::uint64_t words[SUMS * VECTOR], low = 0, high = 0;
  std::memcpy(words, sums, sizeof words);
  for (unsigned word = 0; word < SUMS * VECTOR; word += 2) low ^= words[word], high ^= words[word + 1];
  return static_cast<Wide>(high) << 64 | low;
}

#else

std::uint64_t word_at(const char* bytes, unsigned word) {
  std::uint64_t value;
  std::memcpy(&value, bytes + sizeof value * word, sizeof value);
  return value;
}

// UMAC's NH: of two different blocks it is the same for one in 2^64 keys.
Wide of_block(const char* bytes, const std::uint64_t* key) {
  Wide sums[4] = {};
  for (unsigned word = 0; word < WORDS; word += 8)
    for (unsigned pair = 0; pair < 8; pair += 2)
      sums[pair / 2] += static_cast<Wide>(word_at(bytes, word + pair) + key[word + pair]) *
                        (word_at(bytes, word + pair + 1) + key[word + pair + 1]);
  return sums[0] + sums[1] + sums[2] + sums[3];
}

#endif

std::uint64_t next(std::uint64_t value, std::uint64_t point, std::uint64_t coefficient) {
  const Wide product = static_cast<Wide>(value) * point + coefficient;
  const std::uint64_t folded = (static_cast<std::uint64_t>(product) & PRIME) + static_cast<std::uint64_t>(product >> 61);
  return folded >= PRIME ? folded - PRIME : folded;
}

// The blocks' are coefficients, three of each, of polynomials modulo PRIME. Regions are compared with themselves, so
// their sizes need not be in it.
Digest of_region(const Region& region, const Key& key) {
  const char* bytes = reinterpret_cast<const char*>(region.address);
  std::uint64_t values[2] = {};
  char last[BLOCK];
  for (std::uint64_t place = 0; place < region.size; place += BLOCK) {
    const char* block = bytes + place;
    if (region.size - place < BLOCK) {
      std::memset(last, 0, BLOCK);
      std::memcpy(last, block, region.size - place);
      block = last;
    }
    const Wide found = of_block(block, key.words);
    for (unsigned each = 0; each < 2; ++each)
      for (unsigned part = 0; part < 3; ++part)
        values[each] = next(values[each], key.points[each], static_cast<std::uint64_t>(found >> 43 * part) & ((1ull << 43) - 1));
  }
  return {values[0], values[1]};
}

}  // namespace

extern "C" {

void host_digests(std::uint64_t count, const Region* regions, const Key* key, Digest* digests) {
  for (std::uint64_t number = 0; number < count; ++number) digests[number] = of_region(regions[number], *key);
}

// 1 if all regions have these digests, else 0.
int host_have_digests(std::uint64_t count, const Region* regions, const Key* key, const Digest* digests) {
  for (std::uint64_t number = 0; number < count; ++number) {
    const Digest found = of_region(regions[number], *key);
    if (found.low != digests[number].low || found.high != digests[number].high) return 0;
  }
  return 1;
}
}
