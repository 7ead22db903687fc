// SPDX-License-Identifier: Apache-2.0
// Two processes that share blocks by cuIpcGetMemHandle. The first one is the owner: it writes its
// handles into a file; the other opens them, changes a byte of each, closes them on request, and
// opens them once more at the end.
#include <fcntl.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/e2e/park/program.h"

namespace park_program {
namespace {

constexpr size_t kSizes[] = {4096, 512, 3 << 20, 40 << 20};

std::uint32_t value_of(size_t i, bool changed) {
  return static_cast<std::uint32_t>(i + (changed ? 200 : 100));
}

int own(const std::string& folder) {
  std::vector<Block> blocks;
  std::vector<CUipcMemHandle> handles;
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    blocks.push_back(make_block(kSizes[i], value_of(i, false)));
    handles.emplace_back();
    CALL(cuIpcGetMemHandle, &handles.back(), blocks.back().address);
    CUdeviceptr mine = 0;
    expect(ANSWER(cuIpcOpenMemHandle_v2, &mine, handles.back(), 1) != CUDA_SUCCESS,
           "its own memory is not opened");
  }
  std::ofstream(folder + "/new", std::ios::binary)
      .write(reinterpret_cast<const char*>(handles.data()),
             static_cast<std::streamsize>(handles.size() * sizeof(CUipcMemHandle)));
  (void)std::rename((folder + "/new").c_str(), (folder + "/handles").c_str());
  say_up();
  wait_for((folder + "/go").c_str());
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].last = value_of(i, true);
    look_at(blocks[i]);
  }
  wait_for((folder + "/end").c_str());
  return 0;
}

int open_all(const std::string& folder) {
  wait_for((folder + "/handles").c_str());
  std::vector<CUipcMemHandle> handles(std::size(kSizes));
  std::ifstream(folder + "/handles", std::ios::binary)
      .read(reinterpret_cast<char*>(handles.data()),
            static_cast<std::streamsize>(handles.size() * sizeof(CUipcMemHandle)));
  std::vector<Block> blocks;
  for (size_t i = 0; i < handles.size(); ++i) {
    Block block{0, kSizes[i], value_of(i, false)};
    CALL(cuIpcOpenMemHandle_v2, &block.address, handles[i], 1);
    CUdeviceptr again = 0;
    CALL(cuIpcOpenMemHandle_v2, &again, handles[i], 1);
    expect(again == block.address, "opened twice it has one address");
    CALL(cuIpcCloseMemHandle, again);
    look_at(block);
    block.last = value_of(i, true);
    CALL(cuMemsetD32_v2, block.address, block.last, block.bytes / 4);
    blocks.push_back(block);
  }
  CUipcMemHandle wrong = handles[0];
  wrong.reserved[20] = static_cast<char>(wrong.reserved[20] ^ 1);
  CUdeviceptr none = 0;
  expect(ANSWER(cuIpcOpenMemHandle_v2, &none, wrong, 1) != CUDA_SUCCESS, "a wrong secret");
  say_up();
  wait_for((folder + "/close").c_str());
  for (const Block& block : blocks) CALL(cuIpcCloseMemHandle, block.address);
  expect(ANSWER(cuIpcCloseMemHandle, blocks[0].address) != CUDA_SUCCESS, "closed twice");
  say_up();
  wait_for((folder + "/go").c_str());
  for (size_t i = 0; i < handles.size(); ++i) {
    CALL(cuIpcOpenMemHandle_v2, &blocks[i].address, handles[i], 1);
    look_at(blocks[i]);
    CALL(cuIpcCloseMemHandle, blocks[i].address);
  }
  std::ofstream(folder + "/end");
  return 0;
}

}  // namespace

int ipc(const char* folder) {
  begin();
  const int first = open((std::string(folder) + "/owner").c_str(), O_CREAT | O_EXCL, 0600);
  if (first < 0) return open_all(folder);
  (void)close(first);
  return own(folder);
}

}  // namespace park_program
