# SPDX-License-Identifier: Apache-2.0
mete_fuzz(mover USES park abi base)
