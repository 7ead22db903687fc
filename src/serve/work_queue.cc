// SPDX-License-Identifier: Apache-2.0
// See work_queue.h.
#include "serve/work_queue.h"

namespace mete::serve {

WorkQueue::WorkQueue(std::function<void()> ready) : shared_(std::make_shared<Shared>()) {
  shared_->ready = std::move(ready);
}

void WorkQueue::add(uid_t user, Work work) {
  shared_->users[user].small.push_back({++last_number_, std::move(work)});
  ++size_;
}

void WorkQueue::add_large(uid_t user, Work work) {
  shared_->users[user].large.push_back({++last_number_, std::move(work)});
  ++size_;
}

// The older of the two tasks that can be done.
std::deque<WorkQueue::Task>* WorkQueue::choose(User& user) const {
  const bool large = !user.large.empty() && user.places < kPlaces;
  if (user.small.empty()) return large ? &user.large : nullptr;
  return large && user.large.front().number < user.small.front().number ? &user.large : &user.small;
}

std::optional<std::function<void()>> WorkQueue::next() {
  std::map<uid_t, User>& users = shared_->users;
  auto user = users.upper_bound(last_);
  for (std::size_t tried = 0; tried < users.size(); ++tried, ++user) {
    if (user == users.end()) user = users.begin();
    std::deque<Task>* const tasks = choose(user->second);
    if (tasks == nullptr) continue;
    const bool large = tasks == &user->second.large;
    last_ = user->first;
    Work work = std::move(tasks->front().work);
    tasks->pop_front();
    --size_;
    Place place = large ? take_place(last_, user->second) : nullptr;
    if (is_unused(user->second)) users.erase(user);
    return [work = std::move(work), place = std::move(place)] { work(place); };
  }
  return std::nullopt;
}

WorkQueue::Place WorkQueue::take_place(uid_t uid, User& user) {
  ++user.places;
  // The pointer's value does not matter, only when its last copy goes.
  return {this, [weak = std::weak_ptr(shared_), uid](void*) {
            if (const std::shared_ptr<Shared> shared = weak.lock()) give_back(*shared, uid);
          }};
}

void WorkQueue::give_back(Shared& shared, uid_t uid) {
  const auto user = shared.users.find(uid);
  --user->second.places;
  if (is_unused(user->second)) shared.users.erase(user);
  shared.ready();
}

}  // namespace mete::serve
