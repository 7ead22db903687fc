// SPDX-License-Identifier: Apache-2.0
// See cards_reader.h. The helper's answer is lines of fields between tabs: "driver", "card", "out"
// and "error".
#include "cli/cards_reader.h"

#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "launch/helper_process.h"
#include "node/nvml_driver.h"

namespace mete::cli {

namespace {

constexpr int kLimitMs = 20'000;  // nvmlInit of a driver that has just been loaded takes seconds

// One field: whatever the driver says, it must not look like two.
std::string field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n' || c == '\0') c = ' ';
  return text;
}

std::string line(const std::vector<std::string>& fields) { return base::join(fields, "\t") + "\n"; }

std::string error_line(const Error& error) {
  return line({"error", field(error.message), field(error.evidence), field(error.hint)});
}

std::string card_line(const seam::CardReading& card) {
  const std::string number = "card " + std::to_string(card.index);
  if (card.state == seam::CardState::kLost) return line({"out", number + " is lost"});
  if (card.mig.value_or(false)) return line({"out", number + " is split into MIG slices"});
  const std::optional<Bytes> capacity = card.capacity();
  if (!capacity || !card.total) return line({"out", number + " does not say how large it is"});
  return line({"card", std::to_string(card.index), field(card.uuid), field(card.type),
               field(card.name), std::to_string(card.total->count()),
               std::to_string(capacity->count())});
}

std::string describe_machine(const std::string& nvml) {
  Result<std::unique_ptr<node::NvmlDriver>> driver = node::NvmlDriver::open(nvml);
  if (!driver) return error_line(driver.error());
  const Result<std::vector<seam::CardReading>> cards =
      (*driver)->read_all(seam::Milliseconds(kLimitMs));
  if (!cards) return error_line(cards.error());
  std::string text;
  const Result<seam::DriverIdentity> identity = (*driver)->identity();
  if (identity) text += line({"driver", field(identity->version)});
  for (const seam::CardReading& card : *cards) text += card_line(card);
  return text;
}

Result<core::Card> parse_card(const std::vector<std::string_view>& fields) {
  if (fields.size() != 7) return Error::corrupt("the helper process answers strangely");
  const Result<std::uint64_t> index = base::parse_uint(fields[1]);
  const Result<std::uint64_t> total = base::parse_uint(fields[5]);
  const Result<std::uint64_t> capacity = base::parse_uint(fields[6]);
  if (!index || !total || !capacity) return Error::corrupt("the helper process answers strangely");
  return core::Card{
      static_cast<std::uint32_t>(*index), std::string(fields[2]),    std::string(fields[3]),
      Bytes::from_bytes(*capacity),       Bytes::from_bytes(*total), std::string(fields[4])};
}

Result<CardsRead> parse_answer(const std::string& text) {
  CardsRead read;
  for (const std::string_view row : base::split(text, '\n')) {
    const std::vector<std::string_view> fields = base::split(row, '\t');
    if (fields[0] == "error" && fields.size() == 4) {
      Error error = Error::infeasible("this machine has no usable GPU");
      error.evidence =
          std::string(fields[1]) + (fields[2].empty() ? "" : ": ") + std::string(fields[2]);
      error.hint = "--gpu 0 runs the program without one; METE_SIM=1xH200 simulates one";
      return error;
    }
    if (fields[0] == "driver" && fields.size() == 2) read.driver = fields[1];
    if (fields[0] == "out" && fields.size() == 2)
      read.left_out.append(read.left_out.empty() ? "" : "; ").append(fields[1]);
    if (fields[0] != "card") continue;
    Result<core::Card> card = parse_card(fields);
    if (!card) return card.error();
    read.cards.push_back(*std::move(card));
  }
  return read;
}

}  // namespace

Result<CardsRead> read_cards(const std::string& nvml) {
  Result<launch::HelperProcess> helper =
      launch::HelperProcess::start("mete-cards", [&nvml](launch::HelperProcess::Pipes pipes) {
        (void)base::write_all(pipes.reply,
                              describe_machine(nvml) += launch::HelperProcess::kEndOfReply);
      });
  if (!helper) return std::move(helper).error();
  const Result<std::string> text = helper->collect(kLimitMs);
  if (!text) {
    return Error::io("the GPU driver does not answer")
        .with_evidence(text.error().message)
        .with_hint("nvidia-smi shows whether the driver works at all");
  }
  return parse_answer(*text);
}

}  // namespace mete::cli
