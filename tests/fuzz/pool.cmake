# SPDX-License-Identifier: Apache-2.0
mete_fuzz(pool USES cli)
