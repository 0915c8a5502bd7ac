// Package filter evaluates the filters of reads and the column conditions of writes. Decode and DecodeCondition take a
// Filter message and enforce the constants' limits. The Filter matches rows and selects the requested page of columns.
// It never fails or blocks, is immutable, and is safe for concurrent use.
package filter
