# SPDX-License-Identifier: Apache-2.0
mete_fuzz(trace USES simulate)
