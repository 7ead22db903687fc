// SPDX-License-Identifier: Apache-2.0
// `mete run` for other verbs: a plan in, its exit code out.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/output.h"
#include "cli/run_plan.h"
#include "wire/job.h"

namespace mete::cli {

// Goes along with a run and tells others how it stands: a notebook's client, while its kernel waits
// for a card.
class Companion {
 public:
  virtual ~Companion() = default;
  // Before anything else. `signals` is readable when a signal has come.
  virtual void begin(int signals) = 0;
  // Readable when `signals` is, or when is_over() may have become true.
  virtual int descriptor() const = 0;
  // The job waits for this; "": it is not known for what.
  virtual void waits(const std::string& what) = 0;
  // A signal came that would end the wait. True: it is dealt with, and the job waits on.
  virtual bool takes(int number) = 0;
  // The wait, or the job, is to end. Asked when descriptor() is readable, and about every second
  // while the program runs.
  virtual bool is_over() = 0;
  // The job has its cards, and its program starts when this returns.
  virtual void granted() = 0;
  // The job will not run. Returns when it was told.
  virtual void failed(const Error& error) = 0;
  // How the job stands while its program runs.
  virtual void hears(const wire::JobView& view) = 0;
};

int run_to_the_end(RunPlan plan, const Output& output, Companion* companion = nullptr);

}  // namespace mete::cli
