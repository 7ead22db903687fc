// SPDX-License-Identifier: Apache-2.0
// See card_wire.h. Writer appends fixed-size integers and length-prefixed texts; Reader takes them
// apart in that order and remembers the first error. Each struct has one function for writing and
// one for reading, with the fields in equal order. CardDecoder collects bytes until a frame is
// complete.
#include "node/card_wire.h"

#include <limits>
#include <type_traits>
#include <utility>

namespace mete::node {

namespace {

using seam::CardReading;

enum Kind : std::uint16_t { kPace = 1, kAsking = 2, kSnapshot = 3, kError = 4 };

constexpr std::size_t kMaxText = 4096;  // longer texts are cut

class Writer {
 public:
  template <typename T>
  void number(T value) {
    auto rest = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_ += static_cast<char>(rest & 0xff);
      rest = static_cast<std::make_unsigned_t<T>>(static_cast<std::uint64_t>(rest) >> 8);
    }
  }
  void flag(bool value) { number<std::uint8_t>(value ? 1 : 0); }
  void text(std::string_view value) {
    value = value.substr(0, kMaxText);
    number(static_cast<std::uint16_t>(value.size()));
    bytes_ += value;
  }
  template <typename T>
  void maybe(const std::optional<T>& value) {
    flag(value.has_value());
    if (!value) return;
    if constexpr (std::is_same_v<T, Bytes>)
      number(value->count());
    else if constexpr (std::is_same_v<T, bool>)
      flag(*value);
    else if constexpr (std::is_enum_v<T>)
      number(static_cast<std::uint8_t>(*value));
    else
      number(*value);
  }
  template <typename List, typename Each>
  void list(const List& items, const Each& each) {
    number(static_cast<std::uint32_t>(items.size()));
    for (const auto& item : items) each(item);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads the output of Writer. After the first error everything reads as zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

  template <typename T>
  T number() {
    using Raw = std::make_unsigned_t<T>;
    if (rest_.size() < sizeof(T)) return fail<T>();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(rest_[i])) << 8 * i;
    rest_.remove_prefix(sizeof(T));
    return static_cast<T>(static_cast<Raw>(value));
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) return fail<bool>();
    return value == 1;
  }
  std::string text() {
    const auto size = number<std::uint16_t>();
    if (size > kMaxText || size > rest_.size()) return fail<std::string>();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  template <typename T>
  void choice(T& into, T last) {
    const auto value = number<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(last)) ok_ = false;
    if (ok_) into = static_cast<T>(value);
  }
  template <typename T>
  void maybe(std::optional<T>& into, T last = {}) {
    if (!flag()) return;
    if constexpr (std::is_same_v<T, Bytes>) {
      into = Bytes::from_bytes(number<std::uint64_t>());
    } else if constexpr (std::is_same_v<T, bool>) {
      into = flag();
    } else if constexpr (std::is_enum_v<T>) {
      T value{};
      choice(value, last);
      into = value;
    } else {
      into = number<T>();
    }
  }
  // Each item takes at least one byte, so a count beyond the rest is invalid.
  template <typename T, typename Each>
  void list(std::vector<T>& into, const Each& each) {
    const auto count = number<std::uint32_t>();
    if (count > rest_.size()) ok_ = false;
    for (std::uint32_t i = 0; ok_ && i < count; ++i) each(into.emplace_back());
  }

 private:
  template <typename T>
  T fail() {
    ok_ = false;
    rest_ = {};
    return T{};
  }
  std::string_view rest_;
  bool ok_ = true;
};

void write(Writer& w, const CardReading& card) {
  w.number(card.index);
  for (const std::string& text : {card.uuid, card.name, card.type, card.pci}) w.text(text);
  w.number(static_cast<std::uint8_t>(card.state));
  for (const std::optional<Bytes>& bytes : {card.total, card.reserved, card.free, card.used})
    w.maybe(bytes);
  w.maybe(card.utilisation_pct);
  w.maybe(card.memory_utilisation_pct);
  w.maybe(card.temperature_c);
  w.maybe(card.power_mw);
  w.maybe(card.power_limit_mw);
  w.maybe(card.numa);
  w.maybe(card.compute_mode);
  w.maybe(card.mig);
  w.list(card.links, [&](const seam::CardLink& link) {
    w.number(link.to);
    w.number(link.count);
  });
  w.flag(card.processes.has_value());
  if (!card.processes) return;
  w.list(*card.processes, [&](const seam::ProcessReading& process) {
    w.number(process.pid);
    w.maybe(process.used);
    w.flag(process.mps);
    w.maybe(process.utilisation_pct);
  });
}

void read(Reader& r, CardReading& card) {
  card.index = r.number<unsigned>();
  for (std::string* text : {&card.uuid, &card.name, &card.type, &card.pci}) *text = r.text();
  r.choice(card.state, seam::CardState::kLost);
  for (std::optional<Bytes>* bytes : {&card.total, &card.reserved, &card.free, &card.used})
    r.maybe(*bytes);
  r.maybe(card.utilisation_pct);
  r.maybe(card.memory_utilisation_pct);
  r.maybe(card.temperature_c);
  r.maybe(card.power_mw);
  r.maybe(card.power_limit_mw);
  r.maybe(card.numa);
  r.maybe(card.compute_mode, seam::ComputeMode::kProhibited);
  r.maybe(card.mig);
  r.list(card.links, [&](seam::CardLink& link) {
    link.to = r.number<unsigned>();
    link.count = r.number<unsigned>();
  });
  if (!r.flag()) return;
  r.list(card.processes.emplace(), [&](seam::ProcessReading& process) {
    process.pid = r.number<pid_t>();
    r.maybe(process.used);
    process.mps = r.flag();
    r.maybe(process.utilisation_pct);
  });
}

void write(Writer& w, const ProcessFacts& process) {
  w.number(process.pid);
  w.flag(process.visible);
  w.number(process.start_ticks);
  w.number(process.parent);
  w.maybe(process.uid);
  w.text(process.user);
  w.text(process.comm);
  w.number(process.namespace_init);
  w.text(process.job);
  w.text(process.token);
  w.flag(process.exiting);
  w.number(static_cast<std::uint8_t>(process.meter.state));
  w.list(process.meter.charges, [&](const MeterFacts::Charge& charge) {
    w.text(charge.uuid);
    w.number(charge.bytes.count());
    w.number(charge.peak.count());
  });
}

void read(Reader& r, ProcessFacts& process) {
  process.pid = r.number<pid_t>();
  process.visible = r.flag();
  process.start_ticks = r.number<std::uint64_t>();
  process.parent = r.number<pid_t>();
  r.maybe(process.uid);
  process.user = r.text();
  process.comm = r.text();
  process.namespace_init = r.number<pid_t>();
  process.job = r.text();
  process.token = r.text();
  process.exiting = r.flag();
  r.choice(process.meter.state, MeterFacts::State::kSlot);
  r.list(process.meter.charges, [&](MeterFacts::Charge& charge) {
    charge.uuid = r.text();
    charge.bytes = Bytes::from_bytes(r.number<std::uint64_t>());
    charge.peak = Bytes::from_bytes(r.number<std::uint64_t>());
  });
}

void write(Writer& w, const CardSnapshot& snapshot) {
  w.number(static_cast<std::int64_t>(snapshot.at.count()));
  w.text(snapshot.driver.version);
  w.maybe(snapshot.driver.cuda_version);
  w.list(snapshot.cards, [&](const CardReading& card) { write(w, card); });
  w.list(snapshot.processes, [&](const ProcessFacts& process) { write(w, process); });
}

void read(Reader& r, CardSnapshot& snapshot) {
  snapshot.at = seam::Nanoseconds(r.number<std::int64_t>());
  snapshot.driver.version = r.text();
  r.maybe(snapshot.driver.cuda_version);
  r.list(snapshot.cards, [&](CardReading& card) { read(r, card); });
  r.list(snapshot.processes, [&](ProcessFacts& process) { read(r, process); });
}

Kind write_body(Writer& w, const CardMessage& message) {
  if (const Pace* pace = std::get_if<Pace>(&message)) {
    w.number(pace->period_ms);
    return kPace;
  }
  if (std::holds_alternative<Asking>(message)) return kAsking;
  if (const Error* error = std::get_if<Error>(&message)) {
    w.number(static_cast<std::uint8_t>(error->code));
    for (const std::string& text : {error->message, error->evidence, error->hint}) w.text(text);
    return kError;
  }
  write(w, std::get<CardSnapshot>(message));
  return kSnapshot;
}

std::optional<CardMessage> read_body(std::uint16_t kind, Reader& r) {
  switch (kind) {
    case kPace:
      return Pace{r.number<std::uint32_t>()};
    case kAsking:
      return Asking{};
    case kSnapshot: {
      CardSnapshot snapshot;
      read(r, snapshot);
      return snapshot;
    }
    case kError: {
      Error error;
      r.choice(error.code, ErrorCode::kUnsupported);
      for (std::string* text : {&error.message, &error.evidence, &error.hint}) *text = r.text();
      return error;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::string> encode(const CardMessage& message) {
  Writer body;
  const Kind kind = write_body(body, message);
  std::string bytes = body.take();
  if (bytes.size() > kMaxFrameBytes)
    return Error::exhausted("more processes on the cards than a message can list");
  Writer header;
  header.number(static_cast<std::uint32_t>(bytes.size()));
  header.number(kCardWireVersion);
  header.number(static_cast<std::uint16_t>(kind));
  return header.take() + bytes;
}

Result<std::optional<CardMessage>> CardDecoder::next() {
  if (broken_) return *broken_;
  const std::string_view rest = std::string_view(pending_).substr(at_);
  if (rest.size() < kFrameHeaderBytes) return std::optional<CardMessage>();
  Reader header(rest);
  const auto size = header.number<std::uint32_t>();
  const auto version = header.number<std::uint16_t>();
  const auto kind = header.number<std::uint16_t>();
  if (version != kCardWireVersion || size > kMaxFrameBytes) {
    broken_ = Error::corrupt("the NVML helper speaks another protocol version");
    return *broken_;
  }
  if (rest.size() < kFrameHeaderBytes + size) return std::optional<CardMessage>();
  Reader body(rest.substr(kFrameHeaderBytes, size));
  std::optional<CardMessage> message = read_body(kind, body);
  if (!message || !body.at_end()) {
    broken_ = Error::corrupt("the NVML helper sent an invalid answer");
    return *broken_;
  }
  at_ += kFrameHeaderBytes + size;
  if (at_ == pending_.size() || at_ > kMaxFrameBytes) pending_.erase(0, std::exchange(at_, 0));
  return message;
}

}  // namespace mete::node
