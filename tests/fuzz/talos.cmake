# SPDX-License-Identifier: Apache-2.0
mete_fuzz(talos USES sweep)
