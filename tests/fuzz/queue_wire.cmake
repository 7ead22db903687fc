# SPDX-License-Identifier: Apache-2.0
mete_fuzz(queue_wire USES wire)
