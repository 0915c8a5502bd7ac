-- MySQL dump 10.13  Distrib 8.0.36
INSERT INTO `people` VALUES (1,'Ann'),(2,'Bo');
