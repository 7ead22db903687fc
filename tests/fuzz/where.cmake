# SPDX-License-Identifier: Apache-2.0
mete_fuzz(where USES core)
