# SPDX-License-Identifier: Apache-2.0
mete_fuzz(space_file USES sweep)
