// SPDX-License-Identifier: Apache-2.0
// See card_wire.h. Writer appends fixed-size integers and length-prefixed texts; Reader takes them
// apart in that order and remembers the first error. Each struct has one function for writing and
// one for reading, with the fields in equal order. CardDecoder collects bytes until a frame is
// complete.
#include "node/card_wire.h"

#include <concepts>
#include <type_traits>
#include <utility>

namespace mete::node {

namespace {

using seam::CardReading;

constexpr std::size_t kMaxText = 4096;  // longer texts are cut

template <class T, class Wanted>
concept Is = std::same_as<std::remove_const_t<T>, Wanted>;
template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept Choice = std::is_enum_v<T>;

constexpr seam::CardState last_of(seam::CardState) { return seam::CardState::kLost; }
constexpr seam::ComputeMode last_of(seam::ComputeMode) { return seam::ComputeMode::kProhibited; }
constexpr MeterFacts::State last_of(MeterFacts::State) { return MeterFacts::State::kSlot; }
constexpr ErrorCode last_of(ErrorCode) { return ErrorCode::kUnsupported; }

class Writer {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <Number T>
  void put(T value) {
    auto rest = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_ += static_cast<char>(rest & 0xff);
      rest = static_cast<std::make_unsigned_t<T>>(static_cast<std::uint64_t>(rest) >> 8);
    }
  }
  void put(bool value) { put<std::uint8_t>(value ? 1 : 0); }
  template <Choice T>
  void put(T value) {
    put(static_cast<std::uint8_t>(value));
  }
  void put(Bytes value) { put(value.count()); }
  void put(seam::Nanoseconds value) { put(static_cast<std::int64_t>(value.count())); }
  void put(const std::string& value) {
    const std::string_view text = std::string_view(value).substr(0, kMaxText);
    put(static_cast<std::uint16_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) fields_of(*this, item);
  }

  std::string bytes_;
};

// Reads the output of Writer. After the first error everything reads as zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return ok_ && rest_.empty(); }
  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

 private:
  template <Number T>
  void get(T& into) {
    into = 0;
    if (rest_.size() < sizeof(T)) return fail();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(rest_[i])) << 8 * i;
    rest_.remove_prefix(sizeof(T));
    into = static_cast<T>(static_cast<std::make_unsigned_t<T>>(value));
  }
  template <class T>
  T next() {
    T value{};
    get(value);
    return value;
  }
  void get(bool& into) {
    const auto value = next<std::uint8_t>();
    if (value > 1) fail();
    into = value == 1;
  }
  template <Choice T>
  void get(T& into) {
    const auto value = next<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(last_of(into))) return fail();
    into = static_cast<T>(value);
  }
  void get(Bytes& into) { into = Bytes::from_bytes(next<std::uint64_t>()); }
  void get(seam::Nanoseconds& into) { into = seam::Nanoseconds(next<std::int64_t>()); }
  void get(std::string& into) {
    const auto size = next<std::uint16_t>();
    if (size > kMaxText || size > rest_.size()) return fail();
    into = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <class T>
  void get(std::optional<T>& into) {
    if (next<bool>()) get(into.emplace());
  }
  // Each item takes at least one byte, so a count beyond the rest is invalid.
  template <class T>
  void get(std::vector<T>& into) {
    const auto count = next<std::uint32_t>();
    if (count > rest_.size()) return fail();
    for (std::uint32_t i = 0; ok_ && i < count; ++i) fields_of(*this, into.emplace_back());
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

void fields_of(auto& wire, Is<seam::CardLink> auto& link) { wire(link.to, link.count); }
void fields_of(auto& wire, Is<seam::ProcessReading> auto& process) {
  wire(process.pid, process.used, process.mps, process.utilisation_pct);
}
void fields_of(auto& wire, Is<CardReading> auto& card) {
  wire(card.index, card.uuid, card.name, card.type, card.pci, card.state);
  wire(card.total, card.reserved, card.free, card.used);
  wire(card.utilisation_pct, card.memory_utilisation_pct, card.temperature_c);
  wire(card.power_mw, card.power_limit_mw, card.numa, card.compute_mode, card.mig);
  wire(card.links, card.processes);
}
void fields_of(auto& wire, Is<MeterFacts::Charge> auto& charge) {
  wire(charge.uuid, charge.bytes, charge.peak);
}
void fields_of(auto& wire, Is<ProcessFacts> auto& process) {
  wire(process.pid, process.visible, process.start_ticks, process.parent, process.uid);
  wire(process.user, process.comm, process.namespace_init, process.job, process.token);
  wire(process.exiting, process.meter.state, process.meter.charges);
}
void fields_of(auto& wire, Is<Pace> auto& pace) { wire(pace.period_ms); }
void fields_of(auto& /*wire*/, Is<Asking> auto& /*asking*/) {}
void fields_of(auto& wire, Is<CardSnapshot> auto& snapshot) {
  wire(snapshot.at, snapshot.driver.version, snapshot.driver.cuda_version);
  wire(snapshot.cards, snapshot.processes);
}
void fields_of(auto& wire, Is<Error> auto& error) {
  wire(error.code, error.message, error.evidence, error.hint);
}

// The kind is the place in CardMessage, counted from 1.
std::optional<CardMessage> message_of(std::uint16_t kind) {
  switch (kind) {
    case 1:
      return Pace{};
    case 2:
      return Asking{};
    case 3:
      return CardSnapshot{};
    case 4:
      return Error{};
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::string> encode(const CardMessage& message) {
  Writer body;
  std::visit([&body](const auto& what) { fields_of(body, what); }, message);
  const std::string bytes = body.take();
  if (bytes.size() > kMaxFrameBytes)
    return Error::exhausted("more processes on the cards than a message can list");
  Writer header;
  header(static_cast<std::uint32_t>(bytes.size()), kCardWireVersion,
         static_cast<std::uint16_t>(message.index() + 1));
  return header.take() + bytes;
}

Result<std::optional<CardMessage>> CardDecoder::next() {
  if (broken_) return *broken_;
  const std::string_view rest = std::string_view(pending_).substr(at_);
  if (rest.size() < kFrameHeaderBytes) return std::optional<CardMessage>();
  Reader header(rest);
  std::uint32_t size = 0;
  std::uint16_t version = 0, kind = 0;
  header(size, version, kind);
  if (version != kCardWireVersion || size > kMaxFrameBytes) {
    broken_ = Error::corrupt("the NVML helper speaks another protocol version");
    return *broken_;
  }
  if (rest.size() < kFrameHeaderBytes + size) return std::optional<CardMessage>();
  Reader body(rest.substr(kFrameHeaderBytes, size));
  std::optional<CardMessage> message = message_of(kind);
  if (message) std::visit([&body](auto& what) { fields_of(body, what); }, *message);
  if (!message || !body.at_end()) {
    broken_ = Error::corrupt("the NVML helper sent an invalid answer");
    return *broken_;
  }
  at_ += kFrameHeaderBytes + size;
  if (at_ == pending_.size() || at_ > kMaxFrameBytes) pending_.erase(0, std::exchange(at_, 0));
  return message;
}

}  // namespace mete::node
