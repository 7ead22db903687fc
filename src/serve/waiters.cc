// SPDX-License-Identifier: Apache-2.0
#include "serve/waiters.h"

#include <utility>

namespace mete::serve {

void Waiters::wait_for_change(core::JobId id, std::string tag, uid_t uid,
                              net::Responder responder) {
  add({id, std::move(tag), false, uid, std::move(responder)});
}

void Waiters::wait_for_end(core::JobId id, bool any, uid_t uid, net::Responder responder) {
  Waiter waiter{id, std::nullopt, any, uid, std::move(responder)};
  if (engine_.settled() && is_due(waiter))
    answer(waiter);
  else
    add(std::move(waiter));
}

void Waiters::add(Waiter waiter) {
  const std::uint64_t number = waiter.number = ++last_number_;
  waiter.responder.on_gone([this, number] {
    waiters_.remove_if([number](const Waiter& known) { return known.number == number; });
  });
  waiters_.push_back(std::move(waiter));
}

bool Waiters::is_due(const Waiter& waiter) {
  if (!waiter.tag) return engine_.state().is_over(waiter.job, waiter.any);
  const core::Job* job = engine_.state().find(waiter.job);
  return job == nullptr || views_.tag_of(*job) != *waiter.tag;
}

void Waiters::answer_due() {
  if (answered_version_ == engine_.version() || !engine_.settled()) return;
  answered_version_ = engine_.version();
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (!is_due(*waiter)) {
      ++waiter;
      continue;
    }
    const uid_t uid = waiter->uid;
    const AnswerSize size =
        waiter->tag ? AnswerSize::kSmall : AnswerSize::kLarge;  // all jobs of an array
    dispatcher_.add(uid, size, [this, over = std::move(*waiter)] { answer(over); });
    waiter = waiters_.erase(waiter);
  }
}

void Waiters::answer(const Waiter& waiter) {
  if (waiter.responder.gone()) return;
  if (!engine_.settled()) return waiters_.push_back(waiter);  // the current state may yet be undone
  net::Responder responder = waiter.responder;
  if (waiter.tag) return responder.reply(views_.runner_reply(waiter.job, 200));
  net::Response response = views_.wait_reply(waiter.job, waiter.any);
  response.held = dispatcher_.place();
  responder.reply(response);
}

}  // namespace mete::serve
