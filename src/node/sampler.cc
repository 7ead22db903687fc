// SPDX-License-Identifier: Apache-2.0
#include "node/sampler.h"

#include <algorithm>
#include <map>

namespace mete::node {

const ProcessSample* Sample::find(pid_t pid) const {
  const auto found = std::lower_bound(
      processes.begin(), processes.end(), pid,
      [](const ProcessSample& process, pid_t wanted) { return process.pid < wanted; });
  return found != processes.end() && found->pid == pid ? &*found : nullptr;
}

Sample make_sample(const std::vector<seam::CardReading>& cards, seam::Nanoseconds at) {
  Sample sample;
  sample.at = at;
  std::map<pid_t, ProcessSample> by_pid;
  for (std::size_t position = 0; position < cards.size(); ++position) {
    const seam::CardReading& card = cards[position];
    const bool lost = card.state == seam::CardState::kLost;
    sample.cards.push_back({card.uuid, seam::parse_uuid(card.uuid), lost, card.total, card.free,
                            card.used, !lost && card.processes.has_value()});
    if (!card.processes) continue;
    for (const seam::ProcessReading& reading : *card.processes) {
      ProcessSample& process = by_pid[reading.pid];
      process.pid = reading.pid;
      process.used.resize(cards.size());
      process.present.resize(cards.size());
      process.used[position] = reading.used;
      process.present[position] = true;
    }
  }
  for (auto& [pid, process] : by_pid) sample.processes.push_back(std::move(process));
  return sample;
}

Result<Sample> take_sample(seam::Driver& driver, seam::Clock& clock, seam::Milliseconds limit) {
  const seam::Nanoseconds began = clock.monotonic();
  Result<std::vector<seam::CardReading>> cards = driver.read_all(limit);
  if (!cards) return std::move(cards).error();
  return make_sample(*cards, began);
}

}  // namespace mete::node
