// SPDX-License-Identifier: Apache-2.0
// The names of the fields of each document and request, from its list. A test writes them to
// tests/data/fields.txt, and tests/checks/documents.py compares that file with the schemas in
// docs/formats: a field in only one of them fails. Answers have the name of their schema, "ps", and
// requests their name in openapi.yaml, "JobRequest".
#pragma once

#include <map>
#include <string>

#include "wire/fields.h"

namespace mete::wire {

using Outlines = std::map<std::string, Outline>;

// Each adds the documents of one file.
void outline_cards(Outlines& all);
void outline_event(Outlines& all);
void outline_explain(Outlines& all);
void outline_job(Outlines& all);
void outline_notification(Outlines& all);
void outline_queue(Outlines& all);
void outline_show(Outlines& all);
void outline_snapshot(Outlines& all);
void outline_submit(Outlines& all);
void outline_sweep(Outlines& all);
void outline_view(Outlines& all);

}  // namespace mete::wire
