# SPDX-License-Identifier: Apache-2.0
mete_fuzz(sweep_expression USES core)
