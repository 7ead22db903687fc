// SPDX-License-Identifier: Apache-2.0
// An ordinary program of the CUDA driver API that follows commands on its standard input, one per
// line, with one line of answer: "CODE VALUE...". The tests hold several of them in one job. It
// opens libcuda.so.1 by name and knows nothing of a preload.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "abi/cuda_card.h"
#include "tests/support/driver_calls.h"

namespace actor {

using Words = std::vector<std::string>;
using Command = std::function<std::string(const Words&)>;
std::map<std::string, Command>& commands();

uint64_t number(const std::string& text);  // 64M and 2G understood
inline uint64_t number_or(const Words& words, size_t at, uint64_t otherwise) {
  return words.size() > at ? number(words[at]) : otherwise;
}
inline std::string answer(int code) { return std::to_string(code); }
template <class... Values>
std::string answer(int code, Values... values) {
  std::string text = std::to_string(code);
  ((text.append(1, ' ').append(std::to_string(values))), ...);
  return text;
}

// A piece of memory, with the way to give it back.
struct Piece {
  std::string kind;
  CUdeviceptr value;  // pointer or handle
  uint64_t bytes;
  CUstream stream;
  uint64_t exec;  // the graph that made it
};
int keep(const Piece& piece);
Piece& piece(int id);
void forget(int id);

// Takes one piece of `kind` and keeps it; the id on success, or -1 with the driver's code.
int take(const std::string& kind, uint64_t bytes, CUdevice device, CUresult* code);
CUresult drop(int id);
std::vector<int> pieces();
CUdevice current_device();

CUstream stream_here();  // of the current context, always the same

void add_bind_commands();
void add_card_commands();
void add_memory_commands();
void add_share_commands();
void add_process_commands();
void add_race_commands();

}  // namespace actor
