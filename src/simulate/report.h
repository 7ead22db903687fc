// SPDX-License-Identifier: Apache-2.0
// A page about a simulation: one HTML file without further files, light or dark as its reader
// prefers. Values in, text out. For jobs that stay: what was granted and fragmented as requests
// grow, and which were placed. For jobs with times: these figures over time, the queue, and waits.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulate/replay.h"
#include "simulate/timed.h"

namespace mete::simulate {

// A figure at the top of the page.
struct Figure {
  std::string name;
  std::string value;
  std::string note;
};

struct Page {
  std::string title;     // "mete on 1,213 nodes with 6,212 cards"
  std::string subtitle;  // what was run, and when
  std::vector<Figure> figures;
  // One row each: name and its waits. For a history, more than one.
  std::vector<std::pair<std::string, Waits>> waits;
};

std::string report_html(const Page& page, const Score& score);
// `classes`: of each job, "cpu", "share", "1gpu", ...
std::string report_html(const Page& page, const std::vector<TimedJob>& jobs, const Timed& timed,
                        const std::vector<std::string>& classes);

// "jobs without a card", "shares of a card", "2 cards": the name of a class.
std::string class_in_words(const std::string& name);

}  // namespace mete::simulate
