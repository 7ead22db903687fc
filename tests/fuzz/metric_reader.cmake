# SPDX-License-Identifier: Apache-2.0
mete_fuzz(metric_reader USES runner)
