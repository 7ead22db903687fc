# SPDX-License-Identifier: Apache-2.0
mete_fuzz(card_wire USES node)
