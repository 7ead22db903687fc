// SPDX-License-Identifier: Apache-2.0
// Any bytes through everything that reads a document: no crash, and what is accepted is written as
// text that is read back as the same text again (so nothing that was understood is lost on the
// way). The first byte chooses the reader; the rest is the document.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "wire/cards.h"
#include "wire/event.h"
#include "wire/job.h"
#include "wire/state.h"

namespace {

using namespace mete;

template <typename Decode, typename Encode>
void there_and_back(std::string_view text, Decode decode, Encode encode) {
  const auto value = decode(text);
  if (!value) {
    METE_ASSERT(!value.error().message.empty());
    return;
  }
  const std::string written = encode(*value);
  const auto again = decode(std::string_view(written));
  METE_ASSERT(again.ok());
  METE_ASSERT(encode(*again) == written);
}

void event(std::string_view type, std::string_view text) {
  there_and_back(
      text, [type](std::string_view json) { return wire::decode_event(type, json); },
      [type](const core::Happened& what) {
        METE_ASSERT(core::type_of(what) == type);
        (void)wire::job_of(what);
        return wire::encode(what);
      });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto encode = [](const auto& value) { return wire::encode(value); };
  switch (data[0]) {
    case 'r':
      there_and_back(text, wire::decode_run_request, encode);
      break;
    case 'p':
      there_and_back(text, wire::decode_ps, [](const std::vector<wire::JobView>& jobs) {
        return wire::encode_ps(jobs, {0});
      });
      break;
    case 'a':
      there_and_back(text, wire::decode_run_reply, encode);
      break;
    case 's':
      there_and_back(text, wire::decode_start, encode);
      break;
    case 'e':
      there_and_back(text, wire::decode_end, encode);
      there_and_back(text, wire::decode_exit, encode);
      break;
    case 'j':
      there_and_back(text, wire::decode_spec, encode);
      break;
    case 'c':
      there_and_back(text, wire::decode_cards, encode);
      break;
    case 'd':
      there_and_back(text, wire::decode_daemon,
                     [](const wire::DaemonView& view) { return wire::encode(view, {0}); });
      break;
    case 'x':
      METE_ASSERT(!wire::encode_error(wire::decode_error(text), 1).empty());
      break;
    case 'S':  // a state that was accepted can be taken up
      there_and_back(
          text, [](std::string_view one) { return wire::decode_parts(one); }, encode);
      if (auto parts = wire::decode_parts(text))
        METE_ASSERT(core::State::from_parts(*parts).jobs().size() == parts->jobs.size());
      break;
    default:
      for (const std::string_view type : core::kEventTypes) event(type, text);
  }
  return 0;
}
