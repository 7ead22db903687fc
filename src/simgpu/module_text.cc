// SPDX-License-Identifier: Apache-2.0
// See module_text.h. There are three readers, chosen by the first bytes of the image: our own text
// form line by line, PTX by its declarations, a cubin by its section names. They share only their
// output; each stops at the first thing it cannot read and never reads past the image's end (the
// zero byte, or what the ELF header says).
#include "simgpu/module_text.h"

#include <elf.h>

#include <cstring>

namespace simgpu {
namespace {

constexpr uint64_t kDefaultCode = 64 << 10;

struct Text {
  const char* at;
  const char* end;

  bool done() const { return at == end; }
  void skip_blanks() {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
  }
  bool eat(const char* word) {
    const size_t length = strlen(word);
    if (static_cast<size_t>(end - at) < length || memcmp(at, word, length) != 0) return false;
    at += length;
    return true;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
  }
  bool name(char* out) {
    size_t length = 0;
    while (at < end && is_word(*at) && length < kMaxName) out[length++] = *at++;
    out[length] = '\0';
    return length != 0;
  }
  bool number(uint64_t* out) {
    uint64_t value = 0;
    const char* const first = at;
    while (at < end && *at >= '0' && *at <= '9') {
      if (__builtin_mul_overflow(value, 10ull, &value) ||
          __builtin_add_overflow(value, static_cast<uint64_t>(*at - '0'), &value))
        return false;
      at++;
    }
    *out = value;
    return at != first;
  }
};

Text next_line(Text* text) {
  Text line = {text->at, text->at};
  while (line.end < text->end && *line.end != '\n') line.end++;
  text->at = line.end < text->end ? line.end + 1 : line.end;
  return line;
}

// The next parameter goes behind the last one, aligned to its size (at most 8).
bool add_parameter(KernelSpec* kernel, uint64_t bytes) {
  if (kernel->parameter_count == kMaxParameters || bytes == 0 || bytes > 4096) return false;
  uint32_t offset = 0;
  if (kernel->parameter_count != 0) {
    const ParameterSpec& last = kernel->parameters[kernel->parameter_count - 1];
    const uint32_t align = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
    offset = (last.offset + last.bytes + align - 1) / align * align;
  }
  kernel->parameters[kernel->parameter_count++] = {offset, static_cast<uint32_t>(bytes)};
  return true;
}

// The built-in kernels have known parameters; a line may still list them.
void add_known_parameters(KernelSpec* kernel) {
  if (kernel->parameter_count != 0) return;
  const struct {
    const char* name;
    const char* bytes;  // one digit each
  } known[] = {{"fill", "884"}, {"add", "8888"}, {"spin", "8"}};
  for (const auto& k : known) {
    if (strcmp(kernel->name, k.name) != 0) continue;
    for (const char* digit = k.bytes; *digit != '\0'; digit++)
      add_parameter(kernel, static_cast<uint64_t>(*digit - '0'));
  }
}

bool read_kernel_line(Text line, ModuleSpec* out) {
  KernelSpec kernel;
  kernel.code_bytes = kDefaultCode;
  if (!line.name(kernel.name)) return false;
  for (line.skip_blanks(); !line.done(); line.skip_blanks()) {
    uint64_t value = 0;
    if (line.eat("params=")) {
      do {
        if (!line.number(&value) || !add_parameter(&kernel, value)) return false;
      } while (line.eat(","));
      continue;
    }
    const bool local = line.eat("local=");
    const bool code = !local && line.eat("code=");
    const bool shared = !local && !code && line.eat("shared=");
    const bool regs = !local && !code && !shared && line.eat("regs=");
    if (!(local || code || shared || regs) || !line.number(&value)) return false;
    if (local) kernel.local_bytes = value;
    if (code) kernel.code_bytes = value;
    if (shared) kernel.shared_bytes = static_cast<uint32_t>(value);
    if (regs) kernel.registers = static_cast<uint32_t>(value);
  }
  add_known_parameters(&kernel);
  return out->kernels.push(kernel);
}

bool read_global_line(Text line, ModuleSpec* out) {
  GlobalSpec global;
  if (!line.name(global.name)) return false;
  line.skip_blanks();
  if (!line.number(&global.bytes) || global.bytes == 0) return false;
  line.skip_blanks();
  if (line.eat("managed")) global.managed = true;
  line.skip_blanks();
  return line.done() && out->globals.push(global);
}

ModuleVerdict read_own(Text text, ModuleSpec* out) {
  while (!text.done()) {
    Text line = next_line(&text);
    line.skip_blanks();
    if (line.done() || *line.at == '#') continue;
    bool ok = false;
    if (line.eat("kernel ")) {
      line.skip_blanks();
      ok = read_kernel_line(line, out);
    } else if (line.eat("global ")) {
      line.skip_blanks();
      ok = read_global_line(line, out);
    }
    if (!ok) return ModuleVerdict::kBadText;
  }
  return ModuleVerdict::kOk;
}

// .b8 .u32 .f64 ...: bytes of one element; 0 when it is no type.
uint64_t type_bytes(Text* text) {
  const char* const before = text->at;
  if (text->at < text->end && strchr("bsuf", *text->at) != nullptr && *text->at != '\0') {
    text->at++;
    uint64_t bits = 0;
    if (text->number(&bits) && (bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128))
      return bits / 8;
  }
  text->at = before;
  return 0;
}

// Behind ".param", ".global" or ".local": [.align N] [.other] .TYPE NAME [ "[" COUNT "]" ].
bool read_variable(Text* text, char* name, uint64_t* bytes) {
  uint64_t element = 0;
  for (text->skip_blanks(); text->eat("."); text->skip_blanks()) {
    uint64_t align = 0;
    if (text->eat("align")) {
      text->skip_blanks();
      if (!text->number(&align)) return false;
    } else if ((element = type_bytes(text)) == 0) {
      char ignored[kMaxName + 1];
      if (!text->name(ignored)) return false;
    }
  }
  if (element == 0 || !text->name(name)) return false;
  *bytes = element;
  while (text->eat("[")) {
    uint64_t count = 0;
    if (!text->number(&count) || !text->eat("]")) return false;
    if (__builtin_mul_overflow(*bytes, count, bytes)) return false;
  }
  return true;
}

ModuleVerdict read_ptx(Text text, ModuleSpec* out) {
  KernelSpec* kernel = nullptr;
  bool in_head = false;  // between an .entry and its opening brace
  char name[kMaxName + 1];
  uint64_t bytes = 0;
  while (!text.done()) {
    if (text.eat("//")) {
      next_line(&text);
    } else if (text.eat(".entry")) {
      KernelSpec found;
      found.code_bytes = kDefaultCode;
      text.skip_blanks();
      if (!text.name(found.name) || !out->kernels.push(found)) return ModuleVerdict::kBadText;
      kernel = &out->kernels.back();
      in_head = true;
    } else if (text.eat(".func")) {
      kernel = nullptr;
      in_head = false;
    } else if (in_head && text.eat(".param")) {
      if (!read_variable(&text, name, &bytes) || !add_parameter(kernel, bytes))
        return ModuleVerdict::kBadText;
    } else if (text.eat("{")) {
      in_head = false;
    } else if (kernel != nullptr && !in_head && text.eat(".local")) {
      if (read_variable(&text, name, &bytes)) kernel->local_bytes += bytes;
    } else if (text.eat(".global")) {
      GlobalSpec global;
      // "ld.global.u32" and the like are no declarations: a declaration is followed by a space.
      if (!text.done() && (*text.at == ' ' || *text.at == '\t') &&
          read_variable(&text, global.name, &global.bytes) && global.bytes != 0 &&
          !out->globals.push(global))
        return ModuleVerdict::kNoMemory;
    } else {
      text.at++;
    }
  }
  for (KernelSpec& k : out->kernels) add_known_parameters(&k);
  return ModuleVerdict::kOk;
}

void copy_name(char* to, const char* from) {
  strncpy(to, from, kMaxName);
  to[kMaxName] = '\0';
}

// A cubin: each kernel is a section ".text.NAME", globals are objects in ".nv.global*".
ModuleVerdict read_elf(const char* image, ModuleSpec* out) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum)
    return ModuleVerdict::kNotAModule;
  const Elf64_Shdr* const sections = reinterpret_cast<const Elf64_Shdr*>(image + header.e_shoff);
  const char* const names = image + sections[header.e_shstrndx].sh_offset;
  for (unsigned i = 0; i < header.e_shnum; i++) {
    const char* const name = names + sections[i].sh_name;
    if (strncmp(name, ".text.", 6) == 0) {
      KernelSpec kernel;
      copy_name(kernel.name, name + 6);
      kernel.code_bytes = sections[i].sh_size;
      kernel.registers = sections[i].sh_info >> 24;
      add_known_parameters(&kernel);
      if (!out->kernels.push(kernel)) return ModuleVerdict::kNoMemory;
    }
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header.e_shnum) continue;
    const char* const strings = image + sections[sections[i].sh_link].sh_offset;
    const Elf64_Sym* const symbols =
        reinterpret_cast<const Elf64_Sym*>(image + sections[i].sh_offset);
    for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); s++) {
      if (ELF64_ST_TYPE(symbols[s].st_info) != STT_OBJECT || symbols[s].st_size == 0 ||
          symbols[s].st_shndx >= header.e_shnum ||
          strncmp(names + sections[symbols[s].st_shndx].sh_name, ".nv.global", 10) != 0)
        continue;
      GlobalSpec global;
      copy_name(global.name, strings + symbols[s].st_name);
      global.bytes = symbols[s].st_size;
      if (!out->globals.push(global)) return ModuleVerdict::kNoMemory;
    }
  }
  return ModuleVerdict::kOk;
}

}  // namespace

ModuleVerdict read_module(const void* image, ModuleSpec* out) {
  const char* const bytes = static_cast<const char*>(image);
  if (memcmp(bytes, ELFMAG, 1) == 0)
    return strncmp(bytes, ELFMAG, SELFMAG) == 0 ? read_elf(bytes, out) : ModuleVerdict::kNotAModule;
  Text text = {bytes, bytes + strlen(bytes)};
  if (text.eat("simgpu-module 1\n")) return read_own(text, out);
  if (strstr(bytes, ".version") != nullptr && strstr(bytes, ".target") != nullptr)
    return read_ptx(text, out);
  return ModuleVerdict::kNotAModule;
}

}  // namespace simgpu
