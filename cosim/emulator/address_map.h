// Where in memory a program's addresses are: mapping classes (hw/isa/address_mapping.py), from the table in Config.
#pragma once
#include <cstdint>
#include <vector>

#include "encodings.h"

namespace daedal {

class AddressMap {
 public:
  explicit AddressMap(const Config& config)
      : place_bits_(config.place_bits),
        places_((1ull << place_bits_) - 1),
        page_(config.page_bytes),
        port_bits_((config.ports - 1) * page_),
        tables_(CLASSES * PARTS * ENTRIES) {
    for (std::uint64_t mapping = 0; mapping < CLASSES; ++mapping) {
      granules_[mapping] = config.granules[mapping];
      for (unsigned part = 0; part < PARTS; ++part)
        for (std::uint64_t entry = 0; entry < ENTRIES; ++entry) {
          const std::uint64_t place = entry << part * PART_BITS & places_;
          std::uint64_t& mapped = tables_[(mapping * PARTS + part) * ENTRIES + entry];
          for (unsigned bit = 0; bit < place_bits_; ++bit)
            mapped |= static_cast<std::uint64_t>(
                          __builtin_parityll(place & config.memory_bits[mapping * place_bits_ + bit]))
                      << bit;
        }
    }
  }

  // The memory address of a program's address. Every bit is the XOR of some bits, so the parts of an address may be
  // mapped one by one.
  std::uint64_t operator()(std::uint64_t address) const {
    const std::uint64_t mapping = address >> place_bits_ & (CLASSES - 1);
    if (mapping == PLAIN) return address & places_;
    const std::uint64_t* table = &tables_[mapping * PARTS * ENTRIES];
    std::uint64_t mapped = 0;
    for (unsigned part = 0; part < PARTS; ++part, table += ENTRIES)
      mapped ^= table[address >> part * PART_BITS & (ENTRIES - 1)];
    return mapped;
  }

  // Whether memory has several copies of what is there.
  bool is_copied(std::uint64_t address) const { return (address >> place_bits_ & (CLASSES - 1)) == COPIED; }

  // The memory address from which a row is fetched that lies in one granule: of what is copied, each copy in turn, so
  // that copies which are not equal are noticed.
  std::uint64_t of_row(std::uint64_t address) const {
    const std::uint64_t mapped = (*this)(address);
    return is_copied(address) ? (mapped & ~port_bits_) | (turn_++ * page_ & port_bits_) : mapped;
  }

  // Bytes from an address to the end of its granule: so many follow each other in memory.
  std::uint64_t together(std::uint64_t address) const {
    const std::uint64_t granule = granules_[address >> place_bits_ & (CLASSES - 1)];
    return granule - (address & (granule - 1));
  }

 private:
  static constexpr unsigned PART_BITS = 8, PARTS = (MOST_ADDRESS_BITS + PART_BITS - 1) / PART_BITS;
  static constexpr std::uint64_t ENTRIES = 1 << PART_BITS;

  const unsigned place_bits_;  // of an address below its class
  const std::uint64_t places_, page_, port_bits_;  // the last: of a memory address, those that choose its port
  mutable std::uint64_t turn_ = 0;
  std::vector<std::uint64_t> tables_;
  std::uint64_t granules_[CLASSES];
};

}  // namespace daedal
