#include "framework/conformance/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace altiplano::conformance {
namespace {

using FileBytes = std::vector<char>;

Result<FileBytes> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  FileBytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || bytes.empty()) return invalid_argument("{}: cannot be read", path);
  return bytes;
}

/// A record at an offset; false when it lies outside of the file.
template <typename Record>
bool read_record(const FileBytes& bytes, uint64_t offset, Record& record) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Record)) return false;
  std::memcpy(&record, bytes.data() + offset, sizeof(Record));
  return true;
}

bool is_exported(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info);
  const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS && symbol.st_name != 0 &&
         (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

std::string name_at(const FileBytes& bytes, uint64_t offset) {
  if (offset >= bytes.size()) return "?";
  const char* begin = bytes.data() + offset;
  return {begin, strnlen(begin, bytes.size() - offset)};
}

void add_symbols(const FileBytes& bytes, const Elf64_Shdr& table, const Elf64_Shdr& names,
                 std::vector<std::string>& out) {
  Elf64_Sym symbol{};
  for (uint64_t at = 0; at + sizeof(symbol) <= table.sh_size; at += sizeof(symbol)) {
    if (!read_record(bytes, table.sh_offset + at, symbol)) return;
    if (is_exported(symbol)) out.push_back(name_at(bytes, names.sh_offset + symbol.st_name));
  }
}

}  // namespace

Result<std::vector<std::string>> exported_symbols(const std::string& path) {
  ALTIPLANO_ASSIGN(const FileBytes bytes, read_bytes(path));
  Elf64_Ehdr header{};
  if (!read_record(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return invalid_argument("{}: no 64-bit ELF file", path);
  std::vector<std::string> names;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table{}, strings{};
    if (!read_record(bytes, header.e_shoff + i * header.e_shentsize, table))
      return invalid_argument("{}: cut off, no section {} of {}", path, i, header.e_shnum);
    if (table.sh_type != SHT_DYNSYM) continue;
    if (!read_record(bytes, header.e_shoff + uint64_t{table.sh_link} * header.e_shentsize, strings))
      return invalid_argument("{}: cut off, no names of symbols", path);
    add_symbols(bytes, table, strings, names);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace altiplano::conformance
