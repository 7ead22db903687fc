# SPDX-License-Identifier: Apache-2.0
mete_fuzz(http_client USES net)
