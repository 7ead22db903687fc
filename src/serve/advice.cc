// SPDX-License-Identifier: Apache-2.0
#include "serve/advice.h"

#include <algorithm>

namespace mete::serve {

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

// Rounded up, in steps that people would write.
Bytes rounded(std::uint64_t bytes) {
  const std::uint64_t step = bytes < 4 * kGiB ? kGiB / 4 : bytes < 16 * kGiB ? kGiB / 2 : kGiB;
  return Bytes::from_bytes((bytes + step - 1) / step * step);
}

std::string in_words(Bytes bytes) {
  return bytes.count() % kGiB == 0 ? std::to_string(bytes.count() / kGiB) + "G"
                                   : std::to_string(bytes.count() >> 20) + "M";
}

std::string on_cards(const core::Job& job, Bytes each) {
  const std::string share = in_words(each);
  return job.grant.size() == 1 ? share : std::to_string(job.grant.size()) + "x" + share;
}

}  // namespace

std::optional<wire::ShowDocument::Advice> advice_for(const core::Job& job, const core::Pool& pool) {
  if (job.state != core::JobState::kEnded || !job.exit || job.grant.empty() ||
      job.exit->peaks.size() != job.grant.size())
    return std::nullopt;
  const Bytes peak = *std::max_element(job.exit->peaks.begin(), job.exit->peaks.end());
  Bytes cap = job.grant.front().bytes;
  for (const core::GrantedCard& card : job.grant) cap = std::min(cap, card.bytes);
  if (job.outcome == core::Outcome::kGpuOom) {
    const Bytes more = rounded(cap.count() / 2 * 3);
    Bytes largest;
    for (const core::PoolCard& card : pool.cards) largest = std::max(largest, card.card.capacity);
    if (more > largest && !largest.is_zero())
      return wire::ShowDocument::Advice{
          std::to_string(job.grant.size()),
          "it ran out of its " + to_string(cap) + "; half as much again is more than a card has"};
    return wire::ShowDocument::Advice{
        on_cards(job, more), "it ran out of its " + to_string(cap) + "; half as much again"};
  }
  if (job.outcome != core::Outcome::kOk || peak.is_zero()) return std::nullopt;
  const Bytes enough = rounded(peak.count() + peak.count() / 10);
  // Advice that saves less than a fifth is not worth giving.
  if (enough.count() > cap.count() / 5 * 4) return std::nullopt;
  return wire::ShowDocument::Advice{on_cards(job, enough), "its peak was " + to_string(peak) +
                                                               " of " + to_string(cap) +
                                                               "; this leaves a tenth to spare"};
}

std::optional<std::string> oom_note(const core::Job& job) {
  if (job.outcome != core::Outcome::kGpuOom || !job.exit || job.grant.empty()) return std::nullopt;
  const core::Request request = core::request_of(job);
  std::string text = "out of GPU memory: asked for " +
                     (request.gpu ? as_written(*request.gpu) : std::string("cards")) + ", cap " +
                     to_string(job.grant.front().bytes);
  if (!job.exit->peaks.empty())
    text +=
        ", peak " + to_string(*std::max_element(job.exit->peaks.begin(), job.exit->peaks.end()));
  return text;
}

}  // namespace mete::serve
