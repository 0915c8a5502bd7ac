// Package writer sends rows. Writer.Write takes the PlainBuffer bytes of one batch and returns one outcome for each
// row. Rows that cannot be repeated safely first get a mark or a timestamp, and are looked up before they are sent
// again. Each row gets exactly one outcome, a request refused for its content is halved until the bad row is alone, and
// a row counts as written only if the service says so, or if no cell of it is left to write (Expiry). The writer does
// not wait, does not decide when to retry, and does not know files, lanes or rates.
package writer
