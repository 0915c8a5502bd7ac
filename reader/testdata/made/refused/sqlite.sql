PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE people(id integer primary key,name text);
INSERT INTO "people" VALUES(1,'Ann');
INSERT INTO "people" VALUES(2,'Bo');
COMMIT;