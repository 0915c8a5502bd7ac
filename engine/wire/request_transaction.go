package wire

import "encoding/hex"

// TransactionID is the id of a local transaction: 32 hexadecimal digits. Other forms are refused.
type TransactionID []byte

func (id TransactionID) valid() bool {
	var b [16]byte
	n, err := hex.Decode(b[:], id[:min(len(id), 2*len(b))])
	return err == nil && n == len(b) && len(id) == 2*n
}

func errTransactionID() *Error { return Invalid("TransactionID is invalid.") }

// StartTransaction is a StartLocalTransaction request.
type StartTransaction struct {
	Name TableName
	Key  []Cell // the partition key only
}

func DecodeStartTransaction(b []byte) (*StartTransaction, *Error) {
	r := &StartTransaction{}
	var key []byte
	err := message{{1, "table_name", &r.Name}, {2, "key", &key}}.read(b)
	if err == nil {
		r.Key, err = decodeKey(&Decoder{}, key, keyOfRead)
	}
	if err == nil && len(r.Key) != 1 {
		err = Invalid("StartLocalTransaction support only one primary key.") // the service's wording
	}
	return r, err
}

// DecodeTransaction decodes CommitTransaction or AbortTransaction.
func DecodeTransaction(b []byte) (id TransactionID, err *Error) {
	err = message{{1, "transaction_id", &id}}.read(b)
	if err == nil && len(id) == 0 {
		err = errTransactionID()
	}
	return id, err
}

func AppendStartTransaction(dst []byte, id string) []byte { return appendBytes(dst, 1, []byte(id)) }
