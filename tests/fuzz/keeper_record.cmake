# SPDX-License-Identifier: Apache-2.0
mete_fuzz(keeper_record USES launch)
