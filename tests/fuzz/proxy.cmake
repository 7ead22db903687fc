# SPDX-License-Identifier: Apache-2.0
mete_fuzz(proxy USES proxy wire)
