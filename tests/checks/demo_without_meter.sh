#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo without the meter must come to its end, say that the cap does not hold, name the broken point and fail.
set -u
out=$(METE_DEMO_WITHOUT_METER=1 "$METE_SOURCE_DIR/demo.sh" 2>&1)
status=$?
printf '%s\n' "$out"
((status != 0)) || { echo "the demo passed without the meter"; exit 1; }
grep -q 'FAIL  the step past its cap' <<<"$out" || { echo "it failed for another reason"; exit 1; }
grep -q 'The meter does NOT hold here' <<<"$out" || { echo "it did not come to its end"; exit 1; }
