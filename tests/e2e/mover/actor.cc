// SPDX-License-Identifier: Apache-2.0
// A process whose memory is parked, and a daemon, for the tests of the mover: follows commands, one
// line in, one line out. As a process it is an ordinary program of the driver API with exportable
// memory; it speaks the mover's protocol itself.
//
//   uuid | free                       of card 0: its name; bytes free
//   make ID BYTES SEED                memory full of a pattern
//   check ID SEED                     same | differs
//   connect PATH | close
//   hello TOKEN BYTES | drop ID
//   out ID... | in ID...              all in flight at once; an answer for each
//   send-out ID                       and does not wait for the answer
//   lie ID BYTES                      out, with a size that is not its own
//   daemon PATH | allow TOKEN UID BYTES | forbid TOKEN | arena BYTES | status | token TOKEN
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "abi/cuda_card.h"
#include "park/door.h"
#include "park/mover_client.h"
#include "park/packets.h"

namespace {

using mete::Bytes;
using mete::Fd;
using mete::Result;
using mete::abi::MoverMessage;
using mete::park::MoverClient;

constexpr int kLimitMs = 60'000;

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("driver %s %d\n", what, static_cast<int>(result));
  std::exit(3);
}

struct Memory {
  uint64_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
};

std::map<uint64_t, Memory> memories;
Fd mover;
std::optional<MoverClient> daemon_side;

void start_driver() {
  static bool started = false;
  if (started) return;
  started = true;
  CUdevice device = 0;
  CUcontext context = nullptr;
  must(cuInit(0), "cuInit");
  must(cuDeviceGet(&device, 0), "cuDeviceGet");
  must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void create(Memory& memory) {
  const CUmemAllocationProp prop = mete::abi::memory_on(0, true);
  const CUmemAccessDesc access = mete::abi::access_on(0);
  must(cuMemCreate(&memory.handle, memory.bytes, &prop, 0), "cuMemCreate");
  if (memory.address == 0)
    must(cuMemAddressReserve(&memory.address, memory.bytes, 0, 0, 0), "cuMemAddressReserve");
  must(cuMemMap(memory.address, memory.bytes, 0, memory.handle, 0), "cuMemMap");
  must(cuMemSetAccess(memory.address, memory.bytes, &access, 1), "cuMemSetAccess");
}

void release(Memory& memory) {
  must(cuMemUnmap(memory.address, memory.bytes), "cuMemUnmap");
  must(cuMemRelease(memory.handle), "cuMemRelease");
  memory.handle = 0;
}

std::vector<uint64_t> pattern(uint64_t bytes, uint64_t seed) {
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (uint64_t& word : words) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    word = state;
  }
  return words;
}

MoverClient::Token token_of(const std::string& text) {
  MoverClient::Token token{};
  for (std::size_t i = 0; i < token.size() && 2 * i + 2 <= text.size(); ++i)
    token[i] = static_cast<uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return token;
}

std::string hear() {
  pollfd ready{mover.get(), POLLIN, 0};
  if (poll(&ready, 1, kLimitMs) != 1) return "silent";
  mete::park::Packet packet;
  if (mete::park::receive(mover.get(), true, &packet) != mete::park::Received::kPacket)
    return "closed";
  if (!packet.message) return "garbage";
  if (packet.message->kind == MoverMessage::kDone)
    return "done " + std::to_string(packet.message->id);
  return "refused " + std::to_string(packet.message->id) + " " +
         std::to_string(packet.message->reason) + " " + std::to_string(packet.message->detail) +
         " " + std::to_string(packet.message->bytes);
}

void say(const MoverMessage& message, int descriptor = -1) {
  while (mete::park::send(mover.get(), message, descriptor) == mete::park::Sent::kFull) {
    pollfd ready{mover.get(), POLLOUT, 0};
    if (poll(&ready, 1, kLimitMs) != 1) break;
  }
}

void send_copy(MoverMessage::Kind kind, uint64_t id, uint64_t said_bytes = 0) {
  Memory& memory = memories[id];
  if (kind == MoverMessage::kIn) create(memory);
  int number = -1;
  must(cuMemExportToShareableHandle(&number, memory.handle,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
       "cuMemExportToShareableHandle");
  const Fd descriptor(number);
  MoverMessage message = mete::park::make_message(kind);
  message.id = id;
  message.bytes = said_bytes != 0 ? said_bytes : memory.bytes;
  say(message, descriptor.get());
}

std::string copy(MoverMessage::Kind kind, std::istream& words) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; words >> id;) ids.push_back(id);
  for (const uint64_t id : ids) send_copy(kind, id);
  std::string all;
  for (const uint64_t id : ids) {
    const std::string answer = hear();
    if (answer != "done " + std::to_string(id)) return answer;
    if (kind == MoverMessage::kOut) release(memories[id]);
    all = "done " + std::to_string(ids.size());
  }
  return all;
}

std::string hello(std::istream& words) {
  std::string token;
  MoverMessage message = mete::park::make_message(MoverMessage::kHello);
  words >> token >> message.bytes;
  const MoverClient::Token bytes = token_of(token);
  std::copy(bytes.begin(), bytes.end(), message.token);
  say(message);
  return hear();
}

std::string drop(std::istream& words) {
  MoverMessage message = mete::park::make_message(MoverMessage::kDrop);
  words >> message.id;
  say(message);
  return hear();
}

std::string make(std::istream& words) {
  uint64_t id = 0, bytes = 0, seed = 0;
  words >> id >> bytes >> seed;
  start_driver();
  Memory& memory = memories[id];
  memory.bytes = bytes;
  create(memory);
  const std::vector<uint64_t> content = pattern(bytes, seed);
  must(cuMemcpyHtoD_v2(memory.address, content.data(), bytes), "cuMemcpyHtoD");
  return "made";
}

std::string check(std::istream& words) {
  uint64_t id = 0, seed = 0;
  words >> id >> seed;
  const Memory& memory = memories[id];
  std::vector<uint64_t> content(memory.bytes / sizeof(uint64_t));
  must(cuMemcpyDtoH_v2(content.data(), memory.address, memory.bytes), "cuMemcpyDtoH");
  return content == pattern(memory.bytes, seed) ? "same" : "differs";
}

std::string uuid() {
  start_driver();
  CUuuid bytes{};
  must(cuDeviceGetUuid(&bytes, 0), "cuDeviceGetUuid");
  return mete::abi::uuid_text(bytes.bytes).text;
}

std::string done_or(const Result<void>& result) {
  return result ? "done" : "error " + std::string(mete::base::to_string(result.error().code));
}

// Waits for the answer, within the limit.
Result<MoverClient::Answer> answer_to(const Result<MoverClient::Question>& question) {
  if (!question) return question.error();
  for (;;) {
    Result<std::optional<MoverClient::Answer>> heard = daemon_side->hear();
    if (!heard) return std::move(heard).error();
    if (*heard && !(*heard)->done) return (*heard)->done.error();
    if (*heard && (*heard)->question == *question) return **std::move(heard);
    pollfd ready{daemon_side->descriptor(), POLLIN, 0};
    if (!*heard && poll(&ready, 1, kLimitMs) == 0) return mete::Error::busy("no answer");
  }
}

std::string done_or(const Result<MoverClient::Question>& question) {
  const Result<MoverClient::Answer> answer = answer_to(question);
  return answer ? "done" : done_or(Result<void>(answer.error()));
}

std::string daemon_words(const std::string& verb, std::istream& words) {
  std::string token;
  uint64_t bytes = 0;
  if (verb == "arena" && words >> bytes)
    return done_or(daemon_side->set_arena(Bytes::from_bytes(bytes)));
  if (verb == "status") {
    const Result<MoverClient::Answer> status = answer_to(daemon_side->ask_status());
    if (!status) return done_or(Result<void>(status.error()));
    return std::to_string(status->size.count()) + " " + std::to_string(status->used.count()) + " " +
           std::to_string(status->goal.count()) + " " + std::to_string(status->pin_error);
  }
  words >> token;
  if (verb == "forbid") return done_or(daemon_side->forbid(token_of(token)));
  if (verb == "token") {
    const Result<MoverClient::Answer> status = answer_to(daemon_side->ask_status(token_of(token)));
    if (!status) return "error not_found";
    return std::to_string(status->size.count()) + " " + std::to_string(status->used.count()) + " " +
           std::to_string(status->goal.count()) + " " + std::to_string(status->on_disk.count());
  }
  uint32_t uid = 0;
  words >> uid >> bytes;
  return done_or(daemon_side->allow(token_of(token), uid, Bytes::from_bytes(bytes)));
}

std::string obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb, path;
  words >> verb;
  if (verb == "uuid") return uuid();
  if (verb == "make") return make(words);
  if (verb == "check") return check(words);
  if (verb == "hello") return hello(words);
  if (verb == "drop") return drop(words);
  if (verb == "out") return copy(MoverMessage::kOut, words);
  if (verb == "in") return copy(MoverMessage::kIn, words);
  if (verb == "send-out") {
    uint64_t id = 0;
    words >> id;
    send_copy(MoverMessage::kOut, id);
    return "sent";
  }
  if (verb == "lie") {
    uint64_t id = 0, bytes = 0;
    words >> id >> bytes;
    const bool away = memories[id].handle == 0;
    if (away) create(memories[id]);
    send_copy(MoverMessage::kOut, id, bytes);
    const std::string answer = hear();
    if (away) release(memories[id]);
    return answer;
  }
  if (verb == "free") {
    std::size_t free = 0, total = 0;
    start_driver();
    must(cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
    return std::to_string(free);
  }
  if (verb == "close") {
    mover.reset();
    return "closed";
  }
  if (verb == "connect") {
    words >> path;
    Result<Fd> connected = mete::park::connect_to_mover(path, kLimitMs);
    if (!connected) return done_or(Result<void>(connected.error()));
    mover = std::move(*connected);
    return "done";
  }
  if (verb == "daemon") {
    words >> path;
    Result<MoverClient> connected = MoverClient::connect(path);
    if (!connected) return done_or(Result<void>(connected.error()));
    daemon_side.emplace(std::move(*connected));
    return "done";
  }
  return daemon_words(verb, words);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s\n", obey(line).c_str());
    std::fflush(stdout);
  }
  _exit(0);
}
