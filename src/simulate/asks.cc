// SPDX-License-Identifier: Apache-2.0
// See asks.h. ask_of() resolves a request to thousandths or MiB of a card; request_of() goes back
// and fails if the machine's queue cannot express the ask. line_request() encodes all fields of an
// ask into one request, so that different asks compare as different; words_of() prints the options.
#include "simulate/asks.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace mete::simulate {

using core::cluster::Ask;
using core::cluster::kWholeCard;

namespace {

constexpr std::uint64_t kMib = 1ull << 20;

std::uint64_t mib_up(Bytes bytes) { return bytes.count() / kMib + (bytes.count() % kMib != 0); }

Result<void> set_memory(Ask& ask, const core::Memory& memory) {
  const auto in_mib = [&ask](Bytes bytes) -> Result<void> {
    const std::uint64_t mib = mib_up(bytes);
    if (mib > static_cast<std::uint64_t>(core::cluster::kMaxCardMib))
      return Error::infeasible("no card has " + to_string(bytes));
    ask.share_mib = static_cast<std::int64_t>(mib);
    return {};
  };
  if (const auto* fraction = std::get_if<core::Fraction>(&memory))
    ask.share = static_cast<std::int32_t>(fraction->milli);
  else if (const auto* size = std::get_if<core::Size>(&memory))
    return in_mib(size->bytes);
  else if (const auto* growing = std::get_if<core::Growing>(&memory))
    return in_mib(growing->from);
  else
    ask.share = kWholeCard;
  return {};
}

}  // namespace

Result<Ask> ask_of(const core::Request& request) {
  if (!request.devices.empty())
    return Error::unsupported("--devices names cards of this machine; a cluster has others");
  if (request.procs != 1) return Error::unsupported("--procs is not simulated on a cluster");
  Ask ask;
  if (request.gpu) {
    const core::CardCount& count = request.gpu->cards;
    if (count.kind == core::CardCount::Kind::kAll)
      return Error::unsupported("--gpu all means the cards of one machine; say how many")
          .with_hint("--gpu 4");
    if (count.kind == core::CardCount::Kind::kNumber && count.number > core::cluster::kMaxCards)
      return Error::infeasible("no node has " + std::to_string(count.number) + " cards");
    ask.cards = count.kind == core::CardCount::Kind::kNumber ? count.number
                : count.kind == core::CardCount::Kind::kOne  ? 1
                                                             : 0;
    if (ask.cards > 0)
      if (Result<void> r = set_memory(ask, request.gpu->memory); !r) return r.error();
  }
  if (request.gpu_type && ask.cards > 0) ask.types = {*request.gpu_type};
  if (request.cpus) {
    if (*request.cpus > static_cast<unsigned>(core::cluster::kMaxCpuMilli / 1000))
      return Error::infeasible("no node has " + std::to_string(*request.cpus) + " CPUs");
    ask.cpu_milli = static_cast<std::int32_t>(*request.cpus * 1000);
  }
  if (request.ram) {
    const std::uint64_t mib = mib_up(*request.ram);
    if (mib > static_cast<std::uint64_t>(core::cluster::kMaxRamMib))
      return Error::infeasible("no node has " + to_string(*request.ram) + " of memory");
    ask.ram_mib = static_cast<std::int32_t>(mib);
  }
  return ask;
}

namespace {

core::GpuRequest gpu_of(const Ask& ask) {
  if (ask.cards == 0) return core::no_gpu();
  if (ask.share_mib == 0 && ask.share == kWholeCard) return core::whole_cards(ask.cards);
  core::GpuRequest gpu;
  gpu.cards = {core::CardCount::Kind::kNumber, ask.cards};
  if (ask.share_mib > 0)
    gpu.memory = core::Size{Bytes::from_mib(static_cast<std::uint64_t>(ask.share_mib))};
  else
    gpu.memory = core::Fraction{static_cast<std::uint32_t>(ask.share)};
  return gpu;
}

unsigned cpus_up(const Ask& ask) { return static_cast<unsigned>((ask.cpu_milli + 999) / 1000); }

}  // namespace

core::Request line_request(const Ask& ask, std::uint32_t copies) {
  core::Request request;
  request.procs = copies;
  request.gpu = gpu_of(ask);
  if (!ask.types.empty()) request.gpu_type = base::join(ask.types, "|");
  request.cpus = cpus_up(ask);
  // The remainder of rounding the CPUs is in the last bytes, which no code uses.
  request.ram = Bytes::from_mib(static_cast<std::uint64_t>(ask.ram_mib)) +
                Bytes::from_bytes(static_cast<std::uint64_t>(ask.cpu_milli % 1000));
  return request;
}

Result<core::Request> request_of(const Ask& ask, const std::vector<std::string>& types) {
  core::Request request;
  request.gpu = gpu_of(ask);
  if (!ask.types.empty()) {
    std::vector<std::string> allowed;
    for (const std::string& type : types)
      if (std::find(ask.types.begin(), ask.types.end(), type) != ask.types.end())
        allowed.push_back(type);
    if (allowed.size() > 1 && allowed.size() < types.size())
      return Error::unsupported("the queue of a machine knows one type for a job, not " +
                                base::join(ask.types, " or "));
    if (allowed.size() == 1)
      request.gpu_type = allowed.front();
    else if (allowed.empty())
      request.gpu_type = ask.types.front();  // which can never be satisfied, and is reported so
  }
  if (ask.cpu_milli > 0) request.cpus = cpus_up(ask);
  if (ask.ram_mib > 0) request.ram = Bytes::from_mib(static_cast<std::uint64_t>(ask.ram_mib));
  return request;
}

namespace {

// "2.5", "0.081", "3".
std::string decimal(std::int32_t thousandths) {
  std::string text = std::to_string(thousandths / 1000);
  if (thousandths % 1000 == 0) return text;
  std::string digits = std::to_string(1000 + thousandths % 1000).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return text + "." + digits;
}

std::string size(std::int64_t mib) {
  return base::to_exact_string(Bytes::from_mib(static_cast<std::uint64_t>(mib)));
}

std::string joined_words(const Ask& ask, const std::string& gpu, const std::string& ram) {
  std::string text = "--gpu " + gpu;
  if (ask.cards > 0 && !ask.types.empty()) text += " --gpu-type " + base::join(ask.types, "|");
  if (ask.cpu_milli > 0) text += " --cpus " + decimal(ask.cpu_milli);
  if (ask.ram_mib > 0) text += " --ram " + ram;
  return text;
}

}  // namespace

std::string words_of(const Ask& ask) {
  const std::string count = std::to_string(ask.cards);
  std::string gpu = "0";
  if (ask.cards > 0 && ask.share_mib == 0 && ask.share == kWholeCard)
    gpu = count;
  else if (ask.cards > 0)
    gpu = (ask.cards > 1 ? count + "x" : "") +
          (ask.share_mib > 0 ? size(ask.share_mib) : decimal(ask.share));
  return joined_words(ask, gpu, size(ask.ram_mib));
}

std::string words_of(const Ask& ask, const core::Request& request) {
  if (!request.gpu) return words_of(ask);
  return joined_words(ask, as_written(*request.gpu),
                      request.ram ? base::to_exact_string(*request.ram) : "");
}

}  // namespace mete::simulate
